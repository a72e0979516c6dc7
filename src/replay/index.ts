// `turnpike/replay`: a ledger folded through the machines, and jest matchers for tests of services that embed it.

export { turnpikeMatchers, type TurnpikeMatchers } from './jest-matchers.js';
export { replay, type ReplayEntry, type ReplayReport, type ReplaySource } from './replay.js';
