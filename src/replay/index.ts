// `turnpike/replay`: a ledger folded through the machines, and jest matchers for tests of services that embed it.

export { turnpikeMatchers, type TurnpikeMatchers } from './jest-matchers.js';
export { stateAt, type HistorySource, type StateOptions } from './state-at.js';
export type { LedgerState, RunAt, SessionAt } from './state.js';
export { replay, type ReplayEntry, type ReplayReport, type ReplaySource } from './replay.js';
