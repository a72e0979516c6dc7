// The readiness and the vital figures of one open Turnpike, and what workers of a shared ledger add. The reasons of all
// checks are constants: clients without a token read them.

import { checkSessionKey } from '../../stores/keys/session-key.js';
import type { EngineCondition } from '../../engine/tree-engine.js';
import type { ClockReading } from '../../engine/ports/clock.js';
import type { ClusterDirectory, ClusterWorker } from '../../engine/ports/ledger/cluster.js';
import type { ExternalHeadStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import type { KeyFolder } from '../../home/home-paths.js';
import { readLedgerSigner } from '../../home/ledger-key.js';
import type { StorageGuard } from '../../runtime/storage/storage-guard.js';
import type { TurnpikeComponents } from '../wire.js';
import { Readiness, type ReadinessCheck } from './readiness.js';

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

/** Figures of a process that writes a ledger. */
export interface LedgerVitals {
  /** Whether callers are accepted. */
  condition(): EngineCondition;
  /** Free bytes on the disk of the ledger; null if the disk is not known. */
  freeBytes(): number | null;
  /** How far the clock of the machine was set forward since the start, in ms; 0 with a clock of the caller. */
  clockOffset(): number;
}

export function createReadiness(
  { engine, ledger, storage, policyCache, readClock, restarts, clock, log }: TurnpikeComponents,
  keys: KeyFolder | null,
  { problem }: Pick<ExternalHeadStore, 'problem'>,
): { readonly readiness: Readiness; readonly vitals: LedgerVitals } {
  const condition = (): EngineCondition => engine.condition;
  const standard = standardChecks({
    condition,
    restartsItself: restarts !== null,
    readLedger: () => ledger.size(),
    countActions: async () => (await policyCache.current()).policy.actions.size,
    ...{ storage, keys, readClock, log },
  });
  const readiness = new Readiness({ standard, clock, log });
  if (problem !== undefined) readiness.add({ name: 'heads', run: problem });
  const vitals = {
    condition,
    freeBytes: () => storage.freeBytes(),
    clockOffset: () => readClock?.().offset_ms ?? 0,
  };
  return { readiness, vitals };
}

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
  /** Null if the caller has supplied the clock. */
  readonly readClock: (() => ClockReading) | null;
  readonly log: Log;
}

/** The checks of every Turnpike. */
export function standardChecks(parts: StandardCheckParts): readonly ReadinessCheck[] {
  const { storage, countActions, keys, readClock } = parts;
  const checks: ReadinessCheck[] = [
    { name: 'ledger-write', run: () => ledgerProblem(parts) },
    { name: 'ledger-read', run: () => parts.readLedger().then(() => null), thrown: 'the ledger cannot be read' },
    {
      name: 'disk',
      run: async () => {
        if (!storage.admitsStarts()) return 'less space is free than the reserve: no run starts';
        return (await storage.isWritable()) ? null : 'the disk cannot be written';
      },
    },
    {
      name: 'policy',
      run: async () => ((await countActions()) > 0 ? null : 'no action is registered'),
      thrown: 'the policy cannot be used',
    },
  ];
  if (keys !== null) checks.push(keyCheck(keys));
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
function keyCheck({ ledgerKey, sessionKey }: KeyFolder): ReadinessCheck {
  const isSigned = readLedgerSigner(ledgerKey) !== null;
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
        const message = `the clock of this machine was set ${seconds > 0 ? 'forward' : 'back'}`;
        log.error(message, { seconds: Math.abs(seconds) });
        last = offset_ms;
      }
      return behind_ms > BEHIND_MS_MAX
        ? 'the clock was set back: time runs at half speed until it has caught up'
        : null;
    },
  };
}

const DATABASE = 'database';

/**
 * Adds the checks of a shared ledger, once: of its database, and of its trees that this version cannot serve.
 * @param version that of this worker
 */
export function addDatabaseCheck(
  { readiness, vitals }: ReturnType<typeof createReadiness>,
  cluster: Pick<ClusterDirectory, 'isActive' | 'status'>,
  version: string,
): void {
  if (readiness.has(DATABASE)) return;
  const database: ReadinessCheck = {
    name: DATABASE,
    run: async () => {
      // A restart has compared it with the head file, and refuses it.
      if (vitals.condition().permanentCode === 'LEDGER_BELOW_HEAD') return 'the database has lost commits';
      return (await cluster.isActive()) ? null : 'this process has no session with the database';
    },
    thrown: 'the database cannot be reached',
  };
  // Without a worker that can take them, it serves the other trees: a version that was withdrawn stops no older one.
  const laterTrees: ReadinessCheck = {
    name: 'later-trees',
    run: async () => {
      if (vitals.condition().laterTrees === 0) return null;
      const { workers } = await cluster.status();
      const isPassed = workers.some((worker) => canServeLater(worker, version));
      return isPassed ? 'cannot serve run trees of a later version: a worker of another version has to' : null;
    },
    thrown: 'the list of workers cannot be read',
  };
  readiness.add(database, laterTrees);
}

/** Whether a worker can be expected to serve the trees that a worker of version `own` cannot. */
export const canServeLater = (
  { over_at, connected, version, refuses, later_trees }: ClusterWorker,
  own: string,
): boolean =>
  over_at === null && connected && refuses === null && later_trees === 0 && version !== null && version !== own;
