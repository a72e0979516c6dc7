// The readiness checks of every Turnpike. Their reasons are constants: clients without a token read them.

import { checkSessionKey } from '../../stores/keys/session-key.js';
import type { EngineCondition } from '../../engine/tree-engine.js';
import type { Clock, ClockReading } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import type { KeyFolder } from '../../home/home-paths.js';
import { readLedgerSigner } from '../../home/ledger-key.js';
import type { StorageGuard } from '../../runtime/storage/storage-guard.js';
import { ReadinessReporter, type ReadinessCheck } from './readiness-reporter.js';

/** What the checks look at. */
export interface StandardCheckParts {
  readonly condition: () => EngineCondition;
  /** Whether a failed engine is restarted without a call. */
  readonly restartsItself: boolean;
  /** Reads from the ledger; rejects if that fails. */
  readonly readLedger: () => Promise<unknown>;
  readonly storage: Pick<StorageGuard, 'admitsStarts' | 'isWritable'>;
  /** The number of registered actions; rejects if the policy cannot be used. */
  readonly countActions: () => Promise<number>;
  /** Null without a key folder. */
  readonly keys: KeyFolder | null;
  /** Whether the ledger had a key when it was opened. */
  readonly isSigned: boolean;
  /** Null if the caller has supplied the clock. */
  readonly readClock: (() => ClockReading) | null;
  readonly log: Log;
}

/** A clock that is set further back than this makes a process not ready, in ms. */
const BEHIND_MS_MAX = 60_000;
/** A smaller change of the clock is not logged, in ms. */
const JUMP_MS_MIN = 1_000;
const MS_PER_SECOND = 1_000;

const FAILED = 'a write to the ledger failed';
/** By the code of a failure that no restart removes. */
const PERMANENT_REASONS: Readonly<Record<string, string>> = {
  LEDGER_BELOW_HEAD: 'the ledger has lost entries: it is behind the head of this process',
  LEDGER_TAMPERED: 'the ledger was changed by something else than Turnpike',
  LEDGER_CONFLICT: 'another process writes to the ledger',
  LEDGER_LOCKED: 'another process has opened the ledger',
};
export const DISK_LOW = 'less space is free than the reserve: no run starts';

/** What runs these checks and `added`. Both are loaded with the first report, as one module. */
export const createReporter = (
  parts: StandardCheckParts,
  added: ReadonlyMap<string, ReadinessCheck>,
  clock: Clock,
): ReadinessReporter => new ReadinessReporter({ standard: standardChecks(parts), added, clock, log: parts.log });

/** The checks with the names of `src/host/readiness/turnpike-readiness.ts`, in the same order. */
export function standardChecks(parts: StandardCheckParts): readonly ReadinessCheck[] {
  const { storage, countActions, keys, isSigned, readClock } = parts;
  const checks: ReadinessCheck[] = [
    { name: 'ledger-write', run: () => ledgerProblem(parts) },
    { name: 'ledger-read', run: () => parts.readLedger().then(() => null), thrown: 'the ledger cannot be read' },
    {
      name: 'disk',
      run: async () => {
        if (!storage.admitsStarts()) return DISK_LOW;
        return (await storage.isWritable()) ? null : 'the disk cannot be written';
      },
    },
    {
      name: 'policy',
      run: async () => ((await countActions()) > 0 ? null : 'no action is registered'),
      thrown: 'the policy cannot be used',
    },
  ];
  if (keys !== null) checks.push(keyCheck(keys, isSigned));
  if (readClock !== null) checks.push(clockCheck(readClock, parts.log));
  return checks;
}

function ledgerProblem({ condition, restartsItself }: StandardCheckParts): string | null {
  const { state, permanentCode } = condition();
  if (state === 'running') return null;
  if (state === 'recovering') return 'unfinished work is being settled after a failed write';
  if (permanentCode !== null) {
    return PERMANENT_REASONS[permanentCode] ?? 'the ledger failed for a reason that a restart does not remove';
  }
  return restartsItself ? `${FAILED}: restarts follow until one succeeds` : `${FAILED}: a restart is needed`;
}

/** Reads the keys again as an opening does. Keys of cases are read when they are needed. */
function keyCheck({ ledgerKey, sessionKey }: KeyFolder, isSigned: boolean): ReadinessCheck {
  return {
    name: 'keys',
    run: () => {
      checkSessionKey(sessionKey);
      return isSigned && readLedgerSigner(ledgerKey) === null ? 'the key of the ledger is missing' : null;
    },
    thrown: 'a key cannot be read',
  };
}

function clockCheck(readClock: () => ClockReading, log: Log): ReadinessCheck {
  // As at the start: the first report may come long after it.
  let last = 0;
  return {
    name: 'clock',
    run: () => {
      const { offset_ms, behind_ms } = readClock();
      const seconds = Math.round((offset_ms - last) / MS_PER_SECOND);
      if (Math.abs(offset_ms - last) >= JUMP_MS_MIN) {
        log.error(
          seconds > 0 ? 'the clock of this machine was set forward' : 'the clock of this machine was set back',
          {
            seconds: Math.abs(seconds),
          },
        );
        last = offset_ms;
      }
      return behind_ms > BEHIND_MS_MAX
        ? 'the clock was set back: time runs at half speed until it has caught up'
        : null;
    },
  };
}
