// The machines, published as `turnpike/machines`: those of runs and steps, and those that features run above them.

export * from '../../machines/index.js';
export { createSessionMachine, type SessionMachine } from '../features/sessions/machine/session-machine.js';
