// The processes that write to one shared ledger, as the database lists them, and the reports of one of them.

import type { Clock } from '../clock.js';
import type { Log } from '../log.js';
import type { OverlaySource } from '../policy-sources.js';

/** What identifies the installation that a ledger belongs to. */
export interface Installation {
  /** Drawn when the ledger was created. */
  readonly ledger_id: string;
  /** The public key that verifies the checkpoints of the ledger. It identifies the key folder. */
  readonly vkey: string;
  /** The sandbox volume of all workers. */
  readonly volume_id: string;
}

/** What a worker reports about itself. */
export interface WorkerReport {
  /** The version of this package. */
  readonly version: string;
  /** The URL of its HTTP service; null for a worker without one. */
  readonly address: string | null;
  /** The id of its sandbox volume; null without one. */
  readonly volume_id: string | null;
  /** The epoch of the emergency overlay that its next decision uses: 0 without an overlay, null if it is unusable. */
  readonly overlay_epoch: number | null;
  /** Why it refuses every request, as an error code; null if it works. */
  readonly refuses: string | null;
  /** How many run trees it has met that only a later version can continue. */
  readonly later_trees: number;
}

/**
 * A process that joined the ledger; if it joins again, it is another worker. Its report is null in every member until
 * it has reported.
 */
export interface ClusterWorker {
  readonly worker_id: number;
  /** The boot and the namespace of process ids, not a host name. */
  readonly host: string;
  readonly pid: number;
  readonly joined_at: string;
  /** When another worker declared it over; null while it is not over. */
  readonly over_at: string | null;
  /** Whether its session with the database exists. Without it, the other workers declare it over soon. */
  readonly connected: boolean;
  readonly version: string | null;
  readonly address: string | null;
  readonly volume_id: string | null;
  readonly overlay_epoch: number | null;
  /** Why it refuses every request, as an error code; null if it works, or has not reported. */
  readonly refuses: string | null;
  /** How many run trees it has met that only a later version can continue. */
  readonly later_trees: number;
  /** Leases of effects: it runs them, and their outcome is not recorded. */
  readonly effects: number;
  /** Leases of callers: runs whose caller is connected to it. */
  readonly callers: number;
}

/** The state of a cluster at one moment. */
export interface ClusterStatus {
  /** The format of the tables. */
  readonly format: number;
  readonly entries: number;
  /** Workers that are not over, and those that are over but still have leases; in the order of their numbers. */
  readonly workers: readonly ClusterWorker[];
  /** Commits that are not integrated into the log, and the age of the oldest in milliseconds; 0 without one. */
  readonly pending: { readonly commits: number; readonly oldest_ms: number };
  /** Trees whose timer is due and has not fired, and how late the oldest is in milliseconds; 0 without one. */
  readonly timers: { readonly due: number; readonly oldest_ms: number };
  /** How far the slowest standby is behind in milliseconds; null without a standby, or without the right to know. */
  readonly standby_lag_ms: number | null;
}

/** The list of workers in the database of a shared ledger. */
export interface ClusterDirectory {
  /** @returns null if no installation is recorded @throws LedgerError LEDGER_UNAVAILABLE */
  installation(): Promise<Installation | null>;
  /** Records the installation, unless one is recorded. @returns the one that is recorded now */
  install(installation: Installation): Promise<Installation>;
  /** Whether a rotation of the key has begun and is not finished. @throws LedgerError LEDGER_UNAVAILABLE */
  isRotating(): Promise<boolean>;
  /** Records the report of this process with its worker. Does nothing for a process that has not joined. */
  report(worker: WorkerReport): Promise<void>;
  /** Whether this process has joined, is not over, and has a session with the database now. */
  isActive(): Promise<boolean>;
  /** Declares the workers over whose session is gone, as the poll of another worker does. */
  endLost(): Promise<void>;
  /** @throws LedgerError LEDGER_UNAVAILABLE */
  status(): Promise<ClusterStatus>;
  close(): Promise<void>;
}

/** With what a worker reports itself to the list. */
export interface WorkerReporterOptions {
  readonly directory: Pick<ClusterDirectory, 'report' | 'close'>;
  /** The overlay of the engine. */
  readonly overlay: OverlaySource;
  readonly worker: Omit<WorkerReport, 'address' | 'overlay_epoch' | 'refuses' | 'later_trees'>;
  /** Why the worker refuses every request; null if it works. */
  readonly refuses: () => string | null;
  /** How many run trees it has met that only a later version can continue. */
  readonly laterTrees: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The reports of this process, until they are closed. */
export interface RunningReporter {
  /** @param address the URL of the HTTP service of this worker; the next report contains it */
  serveAt(address: string): void;
  /** Ends the reports, and closes the list of workers. */
  close(): Promise<void>;
}

/** Resolves after the first report, whether it succeeds or not. */
export type StartReporter = (options: WorkerReporterOptions) => Promise<RunningReporter>;
