import type { RunError } from '../errors.js';
import { sandboxElsewhereError } from './engine-errors.js';
import type { Effects, NewInput } from './tree-engine.js';

/** Inputs that start no effect: they start or end runs, or record who reads content. */
const WITHOUT_EFFECTS: ReadonlySet<NewInput['kind']> = new Set([
  'open',
  'start_agent',
  'end',
  'cancel',
  'interrupt',
  'access',
]);

/** @returns why a process whose sandbox is elsewhere does not accept this input; null if it does */
export const refuseSandboxInput = (effects: Effects, { kind }: NewInput): RunError | null =>
  effects.isElsewhere === true && !WITHOUT_EFFECTS.has(kind) ? sandboxElsewhereError() : null;
