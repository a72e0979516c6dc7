// The readiness and the vital figures of one open Turnpike.

import type { EngineCondition } from '../../engine/tree-engine.js';
import type { KeyFolder } from '../../home/home-paths.js';
import { readLedgerSigner } from '../../home/ledger-key.js';
import type { ExternalHeadStore } from '../../engine/ports/ledger/ledger-store.js';
import type { LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import type { TurnpikeOptions } from '../turnpike-options.js';
import type { TurnpikeComponents } from '../wire.js';
import { Readiness } from './readiness.js';

/** Figures of a process that writes a ledger. */
export interface LedgerVitals {
  /** Whether callers are accepted. */
  condition(): EngineCondition;
  /** Free bytes on the disk of the ledger; null if the disk is not known. */
  freeBytes(): number | null;
  /** How far the clock of the machine was set forward since the start, in ms; 0 with a clock of the caller. */
  clockOffset(): number;
}

interface ReadinessParts {
  readonly components: TurnpikeComponents;
  readonly reader: LedgerReader;
  readonly keys: KeyFolder | null;
  readonly externalHeadStore: Pick<ExternalHeadStore, 'problem'>;
  readonly options: Pick<TurnpikeOptions, 'restarts'>;
}

export function createReadiness({ components, reader, keys, externalHeadStore, options }: ReadinessParts): {
  readonly readiness: Readiness;
  readonly vitals: LedgerVitals;
} {
  const { engine, storage, policyCache, readClock, clock, log } = components;
  const condition = (): EngineCondition => engine.condition;
  const isSigned = keys !== null && readLedgerSigner(keys.ledgerKey) !== null;
  const readiness = new Readiness({
    standardNames: standardCheckNames({ keys, readClock }),
    openReporter: async (added) => {
      const { createReporter } = await import('./standard-checks.js');
      const standard = {
        condition,
        restartsItself: options.restarts === 'automatic',
        readLedger: () => reader.size(),
        storage,
        countActions: async () => (await policyCache.current()).policy.actions.size,
        keys,
        isSigned,
        readClock,
        log,
      };
      return createReporter(standard, added, clock);
    },
    clock,
    log,
  });
  const { problem } = externalHeadStore;
  if (problem !== undefined) readiness.add({ name: 'heads', run: problem });
  const vitals = {
    condition,
    freeBytes: () => storage.freeBytes(),
    clockOffset: () => readClock?.().offset_ms ?? 0,
  };
  return { readiness, vitals };
}

/** The names of the standard checks in their order, known before the checks are loaded. */
const standardCheckNames = ({
  keys,
  readClock,
}: {
  readonly keys: KeyFolder | null;
  readonly readClock: TurnpikeComponents['readClock'];
}): readonly string[] => [
  ...['ledger-write', 'ledger-read', 'disk', 'policy'],
  ...(keys === null ? [] : ['keys']),
  ...(readClock === null ? [] : ['clock']),
];
