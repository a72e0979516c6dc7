// `turnpike/replay`: a ledger folded through the machines, and jest matchers for tests of services that embed it.

export { turnpikeMatchers, type TurnpikeMatchers } from './jest-matchers.js';
export { stateAt, type HistorySource, type StateOptions } from '../../kernel/replay/state-at.js';
export type { LedgerState, RunSnapshot, SessionSnapshot } from '../../kernel/replay/ledger-state.js';
export { replay, type ReplayEntry, type ReplayReport, type ReplaySource } from '../../kernel/replay/replay.js';
