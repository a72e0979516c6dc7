import { absentSandbox } from '../../adapters/sandbox/absent-sandbox.js';
import { refuseNetworkFileSystem } from '../../adapters/sandbox/network-file-system.js';
import { systemClock } from '../../adapters/system/system-clock.js';
import type { ClusterDirectory } from '../../ports/ledger/cluster.js';
import { NO_PROGRESS } from '../../ports/progress.js';
import { WorkerReporter } from '../../runtime/cluster/worker-reporter.js';
import { countReads } from '../../runtime/ledger/count-reads.js';
import { addDatabaseCheck } from '../../runtime/readiness/database-check.js';
import { locateExports } from '../../runtime/home/store-home.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../runtime/turnpike.js';
import { winstonLog } from '../../adapters/system/winston-log.js';
import { readPackageVersion } from '../../service/package-version.js';
import { openCluster, openSharedStore, sharedOverlay, type SharedHome } from './shared-home.js';

/** This process as one of the workers of a shared ledger. */
export interface LocalWorker extends Pick<WorkerReporter, 'serveAt'> {
  /** The list of workers; closed with this worker. */
  readonly cluster: ClusterDirectory;
  /** Null without the volume. */
  readonly volume_id: string | null;
  /** Whether its volume may be on a network file system. */
  readonly unsafeShared: boolean;
  /** Declares this worker over, so that others need not wait. Called when the ledger is closed. */
  close(): Promise<void>;
}

/** Joins the ledger of a home, and reports this process to the list of workers until it closes. */
export async function openWorker(
  shared: SharedHome,
  options: Pick<TurnpikeOptions, 'contract' | 'upstreams' | 'log' | 'restarts' | 'onLedgerFailed' | 'telemetry'>,
  progress = NO_PROGRESS,
): Promise<{ readonly turnpike: Turnpike; readonly worker: LocalWorker }> {
  const { paths, stored } = shared;
  const { log = winstonLog('warn') } = options;
  const overlay = sharedOverlay(paths);
  const unsafeShared = stored.unsafe_shared ?? false;
  if (stored.sandbox !== null && !unsafeShared) refuseNetworkFileSystem(paths.sandbox);
  const sandbox = stored.sandbox === null ? absentSandbox() : paths.sandbox;
  const folders = { keys: paths.keys, state: paths.state, sandbox, exports: locateExports(paths) };
  const store = countReads(await openSharedStore(shared), progress, { label: null });
  const turnpike = await openTurnpike({ ...options, ...folders, overlay, store });
  try {
    const cluster = await openCluster(shared);
    addDatabaseCheck(turnpike, cluster);
    const volume_id = stored.sandbox === null ? null : stored.volume_id;
    const worker = { version: readPackageVersion(), volume_id };
    const reporter = new WorkerReporter({ directory: cluster, overlay, worker, clock: systemClock(), log });
    await reporter.start();
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
