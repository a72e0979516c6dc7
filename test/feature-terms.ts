// The names of features that core, kernel and engine may use as terms: `core-names.test.ts` finds all others.

/** The folders that know no feature. */
export const LOWER_FOLDERS = ['src/core', 'src/kernel', 'src/engine'];

/** A term that is the name of a feature, and where it may be. */
export interface AllowedTerm {
  readonly feature: string;
  /** The paths that may have it begin so. */
  readonly in: readonly string[];
  readonly reason: string;
}

/** Ids are those of the requirements of the specification. */
export const ALLOWED_TERMS: readonly AllowedTerm[] = [
  { feature: 'decisions', in: LOWER_FOLDERS, reason: 'every step and every run has a decision (S2-07, S4-09)' },
  { feature: 'promotions', in: ['src/core/'], reason: 'a kind of run, and its event (S4-11, S4-49)' },
  { feature: 'exports', in: ['src/core/'], reason: 'a kind of run, its event and its bundle (S4-02, S4-11, S4-50)' },
  {
    feature: 'approvals',
    in: ['src/core/', 'src/kernel/'],
    reason: 'recorded of runs; the rules are behind policy-features.ts (S4-78)',
  },
  { feature: 'identity', in: LOWER_FOLDERS, reason: 'who acts, and whom content identifies (S4-31, S4-73)' },
  {
    feature: 'conditions',
    in: LOWER_FOLDERS,
    reason:
      'a file of the policy that ledgers pin (pins.ts), asked through policy-features.ts; also the state of an engine',
  },
  {
    feature: 'decision-points',
    in: ['src/core/', 'src/engine/ports/effects/decision-service.ts'],
    reason: 'a key of the actions file, asked through policy-features.ts; the port of their services',
  },
  {
    feature: 'counters',
    in: ['src/core/', 'src/kernel/tree.ts', 'src/engine/tick/tick-inputs.ts', 'src/engine/ports/telemetry.ts'],
    reason: 'a file of the policy and recorded facts, asked through policy-features.ts; the counters of measurements',
  },
  {
    feature: 'hooks',
    in: ['src/core/policy/policy-features.ts'],
    reason: 'the interface that the feature installs names it',
  },
  {
    feature: 'evidence',
    in: ['src/core/contract/evidence/', 'src/core/ledger/proof/key-history.ts'],
    reason: 'the format of an extract of the ledger, which everyone can verify (S4-09)',
  },
  {
    feature: 'backup',
    in: ['src/core/contract/evidence/lost-entries.ts', 'src/core/run/audit-events.ts'],
    reason: 'a ledger records from which backup it was restored (S4-09)',
  },
  {
    feature: 'sessions',
    in: [
      'src/core/contract/inspection/inspection.ts',
      'src/core/contract/run/run-context.ts',
      'src/core/contract/run/run-record.ts',
      'src/engine/ports/identity-provider.ts',
      'src/engine/ports/token-book.ts',
      'src/kernel/interpreter/inert-inspector.ts',
    ],
    reason: 'the scope of a run names the session of its client; XState has the name for an actor (S4-34)',
  },
  {
    feature: 'upstreams',
    in: ['src/core/contract/policy/upstreams.ts', 'src/engine/ports/effects/upstream.ts'],
    reason: 'the file of the policy that pins servers, and their port',
  },
  { feature: 'cluster', in: ['src/engine/ports/ledger/cluster.ts'], reason: 'the port that lists workers' },
  { feature: 'telemetry', in: ['src/engine/ports/telemetry.ts'], reason: 'the port of measurements' },
];
