import { setTimeout as delay } from 'node:timers/promises';
import { absentSandbox } from '../../../sandbox/files/absent-sandbox.js';
import { refuseNetworkFileSystem } from '../../../sandbox/files/network-file-system.js';
import { systemClock } from '../../../system/system-clock.js';
import type { ClusterDirectory, RunningReporter, StartReporter } from '../../../engine/ports/ledger/cluster.js';
import { LedgerError, usageError } from '../../../core/errors.js';
import type { EngineCondition } from '../../../engine/tree-engine.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';
import { findMember } from '../../../features/declare-features.js';
import { countReads } from '../../../runtime/ledger/count-reads.js';
import { addDatabaseCheck } from '../../../host/readiness/turnpike-readiness.js';
import { locateExports } from '../../../home/store-home.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../../host/turnpike.js';
import { winstonLog } from '../../../system/winston-log.js';
import { readPackageVersion } from '../../../system/package-version.js';
import { hasOpenRotation, openCluster, openSharedStore, sharedOverlay, type SharedHome } from './shared-home.js';
import { errorCode } from '../../../system/error-code.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { Log } from '../../../engine/ports/log.js';
import type { CommandOption } from '../command.js';
import { integerType } from '../option-types.js';

/** How long a service waits for its database at its start, in seconds. */
const WAIT_SECONDS_DEFAULT = 60;
const WAIT_SECONDS_MAX = 86_400;
/** Between two attempts to reach a database that is away, in ms. */
const DATABASE_RETRY_MS = 500;

export const WAIT_OPTION = {
  name: 'wait',
  value: 'SECONDS',
  type: integerType({ max: WAIT_SECONDS_MAX, takes: `0 to ${WAIT_SECONDS_MAX} seconds` }),
  default: String(WAIT_SECONDS_DEFAULT),
  help: `how long to wait at the start for a database that is away (default ${WAIT_SECONDS_DEFAULT})`,
} as const satisfies CommandOption;

/** How a service waits for its database. */
export interface DatabaseWait {
  readonly ms: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Ends the wait. */
  readonly stop?: AbortSignal;
}

/** Repeats `open` while the database is away. @throws the error of the last attempt; any other error at once */
export async function waitForDatabase<T>(open: () => Promise<T>, wait: DatabaseWait): Promise<T> {
  const end = wait.clock.now() + wait.ms;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await open();
    } catch (error) {
      if (!isDatabaseAway(error) || wait.clock.now() >= end || wait.stop?.aborted === true) throw error;
      if (isFirst) wait.log.warn('the database is away: waiting for it', { seconds: wait.ms / 1_000, error });
    }
    await delay(DATABASE_RETRY_MS, undefined, wait.stop === undefined ? {} : { signal: wait.stop }).catch(
      () => undefined,
    );
  }
}

/** No connection, a connection that broke, or a server that starts or ends. */
const AWAY =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|E(?:HOST|NET)UNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EPIPE|57P0[123]|08...)$/;

function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof LedgerError) || error.code !== 'LEDGER_UNAVAILABLE') return false;
  let cause: unknown = error.cause;
  while (typeof cause === 'object' && cause !== null) {
    const { message, cause: next } = cause as Partial<Error>;
    if (AWAY.test(errorCode(cause)) || /^(?:timeout expired|Connection terminated)/.test(message ?? '')) return true;
    cause = next;
  }
  return false;
}

/** This process as one of the workers of a shared ledger. */
export interface LocalWorker extends Pick<RunningReporter, 'serveAt'> {
  /** The list of workers; closed with this worker. */
  readonly cluster: ClusterDirectory;
  /** Null without the volume. */
  readonly volume_id: string | null;
  /** Whether its volume may be on a network file system. */
  readonly unsafeShared: boolean;
  /** Declares this worker over, so that others need not wait. Called when the ledger is closed. */
  close(): Promise<void>;
}

type WorkerOptions = Pick<
  TurnpikeOptions,
  'contract' | 'upstreams' | 'hooks' | 'log' | 'restarts' | 'onLedgerFailed' | 'telemetry'
>;

interface OpenWorker {
  readonly turnpike: Turnpike;
  readonly worker: LocalWorker;
}

/**
 * Joins the ledger of a home, and reports this process to the list of workers until it closes. Finishes a rotation of
 * the key first that was interrupted.
 * @param alone keeps all other writers out, for a rotation of the key
 * @throws LedgerError LEDGER_UNAVAILABLE while a rotation is running in another process
 */
export async function openWorker(
  shared: SharedHome,
  options: WorkerOptions,
  { progress = NO_PROGRESS, alone = false }: { readonly progress?: ProgressReporter; readonly alone?: boolean } = {},
): Promise<OpenWorker> {
  if (alone) return waitForLock(() => joinLedger(shared, options, { progress, alone }), ALONE_TRIES);
  if (await hasOpenRotation(shared)) await finishRotation(shared, options, progress);
  return joinLedger(shared, options, { progress, alone });
}

/** Why this worker refuses every request; null if it works. */
const refusalOf = ({ state, permanentCode }: EngineCondition): string | null =>
  state === 'running' || state === 'recovering' ? null : (permanentCode ?? 'LEDGER_UNAVAILABLE');

/** Opening the ledger alone finishes the rotation. Another process may do that at the same time. */
async function finishRotation(shared: SharedHome, options: WorkerOptions, progress: ProgressReporter): Promise<void> {
  try {
    await waitForLock(async () => {
      if (!(await hasOpenRotation(shared))) return;
      const { turnpike, worker } = await joinLedger(shared, options, { progress, alone: true });
      await turnpike.close();
      await worker.close();
    }, FINISH_TRIES);
  } catch (cause) {
    if (!isLocked(cause)) throw cause;
    const message =
      'a rotation of the key of the ledger is not finished, and another process has the ledger open for writing: ' +
      'wait until the rotation has ended, or stop that process';
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });
  }
}

/** How often a process tries to open the ledger alone, and at which interval: another one may be ending. */
const ALONE_TRIES = 10;
const FINISH_TRIES = 50;
const RETRY_MS = 100;

async function waitForLock<T>(open: () => Promise<T>, triesMax: number): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await open();
    } catch (error) {
      if (!isLocked(error) || tries === triesMax) throw error;
    }
    await delay(RETRY_MS);
  }
}

/** Other workers wait for the reports, for example until a change of the overlay is in force everywhere. */
async function loadReporter(): Promise<StartReporter> {
  const load = findMember('workerReporter');
  if (load !== undefined) return load();
  throw usageError(
    'this ledger has several workers, and the feature that reports a worker to the others is not installed',
  );
}

const isLocked = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_LOCKED';

async function joinLedger(
  shared: SharedHome,
  options: WorkerOptions,
  { progress, alone }: { readonly progress: ProgressReporter; readonly alone: boolean },
): Promise<OpenWorker> {
  const { paths, stored } = shared;
  const { log = winstonLog('warn') } = options;
  const startReporter = await loadReporter();
  const overlay = sharedOverlay(paths);
  const unsafeShared = stored.unsafe_shared ?? false;
  if (stored.sandbox !== null && !unsafeShared) refuseNetworkFileSystem(paths.sandbox);
  const sandbox = stored.sandbox === null ? absentSandbox() : paths.sandbox;
  const folders = { keys: paths.keys, state: paths.state, sandbox, exports: locateExports(paths) };
  const store = countReads(await openSharedStore(shared, { alone }), progress, { label: null });
  const turnpike = await openTurnpike({ ...options, ...folders, overlay, store });
  try {
    const cluster = await openCluster(shared);
    const version = readPackageVersion();
    addDatabaseCheck(turnpike, cluster, version);
    const volume_id = stored.sandbox === null ? null : stored.volume_id;
    const worker = { version, volume_id };
    const reporter = await startReporter({
      ...{ directory: cluster, overlay, worker, clock: systemClock(), log },
      refuses: () => refusalOf(turnpike.vitals.condition()),
      laterTrees: () => turnpike.vitals.condition().laterTrees,
    });
    const close = async (): Promise<void> => {
      await cluster
        .endLost()
        .catch((error: unknown) => log.warn('this worker cannot say that it has ended', { error }));
      await reporter.close();
    };
    return {
      turnpike,
      worker: { cluster, volume_id, unsafeShared, close, serveAt: (address) => reporter.serveAt(address) },
    };
  } catch (error) {
    await turnpike.close();
    throw error;
  }
}
