// Access to a home directory for a command: in this process if it gets the writer lock, else through the process that
// owns the lock (D13). Commands behave the same in both cases.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Registrations } from '../../core/contract/policy/catalogue.js';
import { UPSTREAMS_FILE } from '../../core/contract/policy/upstreams.js';
import { LedgerError, usageError } from '../../core/errors.js';
import { FEATURES } from '../../features/declare-features.js';
import { remoteMembers } from '../../host/feature-parts.js';
import { connectControl } from '../../host/control/control-client.js';
import type { ControlledOperations } from '../../host/control/control-server.js';
import { requireHome, type HomePaths } from '../../home/home.js';
import type { ProgressReporter } from '../../engine/ports/progress.js';
import type { Telemetry } from '../../engine/ports/telemetry.js';
import { contractFolder } from '../../runtime/shipped-contract.js';
import type { AddedMembers, RequestSender } from '../../runtime/host-feature.js';
import { countReads } from '../../runtime/ledger/count-reads.js';
import { openEnvironment, openTurnpikeIn, type Turnpike, type TurnpikeOptions } from '../../host/turnpike.js';
import type { ConfiguredOptions } from '../../host/configuration/turnpike-configuration.js';
import type { CommandArguments } from './command.js';
import { configuredRegistrations, findContractFolder, homeOf, type ContractFolder } from './options/folders.js';
import type { Io } from './io.js';
import { progressFor } from './progress-bar.js';
import { openWorker, type LocalWorker, waitForDatabase, type DatabaseWait } from './store/open-worker.js';
import { findSharedHome, openCluster, type SharedHome } from './store/shared-home.js';
import { countText } from './text/terminal.js';

/**
 * How often and at which interval a command retries while the owner of a home cannot be reached: it may be starting or
 * ending.
 */
const CONNECT_TRIES = 50;
const RETRY_MS = 100;

/** A home that a command uses, in this process or through its owner. */
export interface HomeAccess {
  /** The operations of the home. Runs that they start in another process continue there. */
  readonly turnpike: AddedMembers & ControlledOperations;
  /** Null if another process owns the home. */
  readonly localTurnpike: Turnpike | null;
  /** Sends requests of features to the process that owns the home. Null if this process owns it. */
  readonly owner: RequestSender | null;
  /** This process as a worker of a shared ledger. Null for any other ledger, or if another process owns the home. */
  readonly worker: LocalWorker | null;
  /** Releases the home; unfinished agent runs of this command are interrupted. */
  close(): Promise<void>;
}

/** What follows a failed write to the ledger. */
type ServiceReaction = Pick<TurnpikeOptions, 'restarts' | 'onLedgerFailed'>;

export interface HomeAccessOptions {
  /**
   * Whether to connect the upstream servers of the contract folder, for agents that may call their tools. Default
   * false.
   */
  readonly upstreams?: boolean;
  /** Whether coding agents may ask about the calls of their own tools. Default false. */
  readonly hooks?: boolean;
  /** Requires this process to own the home, for services that cannot work through another process. Default false. */
  readonly localOnly?: boolean;
  /** Keeps all other processes from writing to a shared ledger, and fails if some do. Default false. */
  readonly alone?: boolean;
  /** How to wait for the database of a shared ledger that is away. Default: not at all. */
  readonly wait?: DatabaseWait | null;
  /** What follows a failed write to the ledger. Default: nothing, because most commands end soon. */
  readonly reaction?: ServiceReaction;
  /** Where traces and metrics of this process go. Default: nowhere. */
  readonly telemetry?: Telemetry | null;
}

const DEFAULTS: Required<HomeAccessOptions> = {
  upstreams: false,
  hooks: false,
  localOnly: false,
  alone: false,
  wait: null,
  reaction: {},
  telemetry: null,
};

interface HomeLocation extends Required<HomeAccessOptions> {
  readonly home: HomePaths;
  /** Null for a home with a ledger of its own. */
  readonly shared: SharedHome | null;
  readonly contract: ContractFolder;
  /** What other services register. */
  readonly registrations: Registrations | 'ledger';
  /** The configured options of `openTurnpike`. */
  readonly configured: ConfiguredOptions;
  readonly progress: ProgressReporter;
}

/**
 * Opens the home that the arguments name while `work` runs.
 * @throws like `openHomeAccess`
 */
export async function withHomeAccess<T>(
  args: CommandArguments,
  io: Io,
  work: (home: HomeAccess) => Promise<T>,
  holding: HomeAccessOptions = {},
): Promise<T> {
  const home = await openHomeAccess(args, io, holding);
  try {
    return await work(home);
  } finally {
    await home.close();
  }
}

/**
 * Opens the home that the arguments name, which no other process may have open, while `work` runs.
 * @throws like `openHomeAccess`
 */
export const withLocalTurnpike = <T>(
  args: CommandArguments,
  io: Io,
  work: (turnpike: Turnpike) => Promise<T>,
  holding: Pick<HomeAccessOptions, 'alone'> = {},
): Promise<T> =>
  withHomeAccess(
    args,
    io,
    ({ localTurnpike }) => {
      if (localTurnpike === null) throw args.usageError('another process has the home directory open');
      return work(localTurnpike);
    },
    { ...holding, localOnly: true },
  );

/**
 * Opens the home that the arguments name.
 * @throws UsageError if no home directory exists; LedgerError LEDGER_LOCKED if the process that owns it cannot be
 *   reached
 */
export async function openHomeAccess(
  args: CommandArguments,
  io: Io,
  options: HomeAccessOptions = {},
): Promise<HomeAccess> {
  const paths = homeOf(args, io);
  const location: HomeLocation = {
    ...DEFAULTS,
    ...options,
    home: paths,
    shared: findSharedHome(paths, args),
    contract: findContractFolder(args, io),
    registrations: (await configuredRegistrations(args, io)) ?? 'ledger',
    configured: args.openOptions,
    progress: progressFor(args, io),
  };
  const { shared, progress, alone, localOnly } = location;
  if (shared !== null) refuseFolders(args.openOptions);
  requireHome(paths.home);
  progress.begin({ label: 'opening the home directory', unit: 'entries', total: null });
  for (let tries = 1; ; tries += 1) {
    try {
      const access = await openLocally(location, io);
      progress.end();
      return access;
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (alone && shared !== null) throw await workersRunError(shared, error);
      if (localOnly) throw homeInUseError(paths.home, error);
      const access = await connectToOwner(location);
      if (access !== null) {
        progress.end();
        return access;
      }
      if (tries === CONNECT_TRIES) throw error;
    }
    await delay(RETRY_MS);
  }
}

/** @throws UsageError for a configured folder that a home with a shared ledger names itself */
function refuseFolders(configured: ConfiguredOptions): void {
  for (const name of ['sandbox', 'exports', 'keys', 'state'] as const) {
    if (configured[name] === undefined) continue;
    throw usageError(`${name}: the home directory of a shared ledger names its own: remove it from the configuration`);
  }
}

async function openLocally(location: HomeLocation, io: Io): Promise<HomeAccess> {
  const { home, shared, contract, upstreams, hooks, reaction, registrations } = location;
  const { configured, telemetry, progress, alone, wait } = location;
  const hasUpstreams = upstreams && existsSync(join(contract.path, UPSTREAMS_FILE));
  const observed = telemetry === null ? {} : { telemetry };
  const given = { ...reaction, ...configured, ...observed, registrations };
  const options = { ...given, contract: contract.path, upstreams: hasUpstreams, hooks, log: io.log };
  const { turnpike, worker } =
    shared === null
      ? { turnpike: await openCounted({ ...options, home: home.home }, progress), worker: null }
      : await openWaiting(() => openWorker(shared, options, { progress, alone }), wait);
  const { trees, interrupted, settled } = turnpike.recovery;
  // Sessions and pending approvals survive a process; they do not count as interrupted.
  if (interrupted + settled > 0) {
    const recovered = `${countText(interrupted, 'agent run')} interrupted, ${countText(settled, 'action')} settled`;
    await io.stderr.writeLine(
      `recovered ${countText(trees, 'run tree')} that an earlier process left unfinished: ${recovered}`,
    );
  }
  return {
    ...{ turnpike, localTurnpike: turnpike, owner: null, worker },
    close: async () => {
      await waitForOtherCommands(turnpike, io);
      await turnpike.close();
      await worker?.close();
    },
  };
}

const openWaiting = <T>(open: () => Promise<T>, wait: DatabaseWait | null): Promise<T> =>
  wait === null ? open() : waitForDatabase(open, wait);

/** The reads of the engine advance the part that the command has begun. */
async function openCounted(options: TurnpikeOptions, progress: ProgressReporter): Promise<Turnpike> {
  const environment = await openEnvironment(options);
  const store = countReads(environment.store, progress, { label: null });
  return openTurnpikeIn({ ...environment, store }, options);
}

/**
 * @returns null if no owner accepts requests, because its socket does not exist yet or any more. A request to a
 * connected owner is sent only once: a second time might execute it twice.
 */
async function connectToOwner({ home, contract }: HomeLocation): Promise<HomeAccess | null> {
  const chosen = contract.isChosen ? contractFolder(contract.path) : null;
  const client = await connectControl(home.control, chosen);
  if (client === null) return null;
  let isReady = false;
  try {
    isReady = await client.isReady();
  } finally {
    if (!isReady) await client.close();
  }
  if (!isReady) return null;
  return {
    turnpike: Object.assign(client, remoteMembers(FEATURES, client, chosen)),
    ...{ localTurnpike: null, owner: client, worker: null },
    close: () => client.close(),
  };
}

/**
 * Other commands may be working through this process. Ending now would interrupt their runs, so this waits for them.
 */
async function waitForOtherCommands({ control, failed }: Turnpike, io: Io): Promise<void> {
  const stop = io.stop();
  if (control === null || failed || stop.aborted) return;
  if (control.connections > 0)
    await io.stderr.writeLine(
      `waiting for ${countText(control.connections, 'other command')} connected to this home directory`,
    );
  const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
  await Promise.race([control.retire(), stopped]);
}

const homeInUseError = (home: string, cause: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_LOCKED',
    message: `another process has ${home} open, and this command must own it: stop that process first`,
    cause,
  });

async function workersRunError(shared: SharedHome, cause: unknown): Promise<LedgerError> {
  const cluster = await openCluster(shared, true);
  try {
    const workers = (await cluster.status()).workers.filter(({ connected }) => connected);
    const names = workers.map(({ pid, address }) => `process ${pid}${address === null ? '' : ` at ${address}`}`);
    const who =
      names.length === 0 ? 'another process has' : `${names.join(', ')} ${names.length === 1 ? 'has' : 'have'}`;
    const message = `${who} the ledger open for writing: stop every worker, repeat this, and start them again`;
    return new LedgerError({ code: 'LEDGER_LOCKED', message, cause });
  } finally {
    await cluster.close();
  }
}

const isLocked = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_LOCKED';
