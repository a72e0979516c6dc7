// `turnpike/replay`: a ledger folded through the machines, and jest matchers for tests of services that embed it.

export { turnpikeMatchers, type TurnpikeMatchers } from './jest-matchers.js';
export { stateAt, type HistorySource, type StateOptions } from '../../kernel/replay/state-at.js';
export type { LedgerState, RunSnapshot, SessionSnapshot } from '../../kernel/replay/ledger-state.js';
export { replay, type ReplayEntry, type ReplayReport, type ReplaySource } from '../../kernel/replay/replay.js';

// Former names, for one minor version. CHANGELOG.md lists them.
export type {
  /** @deprecated Use `RunSnapshot`. */
  RunSnapshot as RunAt,
  /** @deprecated Use `SessionSnapshot`. */
  SessionSnapshot as SessionAt,
} from '../../kernel/replay/ledger-state.js';
