// `turnpike/replay`: a ledger folded through the machines, and jest matchers for tests of services that embed it.

import { declareFeatures } from '../../features/declare-features.js';

export { turnpikeMatchers, type TurnpikeMatchers } from './jest-matchers.js';
export { stateAt, type HistorySource, type StateOptions } from '../../kernel/replay/state-at.js';
export type { LedgerState, RunSnapshot } from '../../kernel/replay/ledger-state.js';
export type { SessionSnapshot } from '../../features/sessions/tree/session-of.js';
export type { LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
export { replay, type ReplayEntry, type ReplayReport, type ReplaySource } from '../../kernel/replay/replay.js';

// A ledger may contain what features have recorded.
declareFeatures();
