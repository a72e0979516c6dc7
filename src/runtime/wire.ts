// The composition root: ports are wired to adapters here, and nowhere else.

import { resolve } from 'node:path';
import { commandRunner } from '../adapters/command-runner.js';
import { diskSpace } from '../adapters/disk-space.js';
import { keepingAlive } from '../adapters/keep-alive.js';
import { nanoidIds } from '../adapters/nanoid-ids.js';
import { overlayFile, overlayFiles } from '../adapters/overlay-file.js';
import { nextTurn, systemPace } from '../adapters/pace.js';
import { policySource } from '../adapters/policy-source.js';
import { passingKey, sessionKey } from '../adapters/session-key.js';
import { specFiles } from '../adapters/spec-files.js';
import { openSandbox } from '../adapters/sandbox.js';
import { sqliteHistoryCache } from '../adapters/sqlite-history-cache.js';
import { systemClock } from '../adapters/system-clock.js';
import { winstonLog } from '../adapters/winston-log.js';
import { embeddedEngine } from '../engine/embedded.js';
import type { EngineListener, TreeEngine } from '../engine/tree-engine.js';
import { UsageError } from '../errors.js';
import type { Clock } from '../ports/clock.js';
import type { CommandRunner } from '../ports/command-runner.js';
import type { Sandbox } from '../ports/executor.js';
import type { HistoryCache } from '../ports/history-cache.js';
import type { Ids } from '../ports/ids.js';
import type { KeepAlive } from '../ports/keep-alive.js';
import type { Log } from '../ports/log.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Pace } from '../ports/pace.js';
import type { Secrets } from '../ports/secrets.js';
import { Agents } from './agents.js';
import { AutomaticRestarts } from './automatic-restarts.js';
import { BoundedCalls } from './effects/bounded-call.js';
import { CallLog } from './effects/call-log.js';
import { catalogueFrom } from './effects/define.js';
import { comparedOverlay } from './compared-overlay.js';
import { Gateway } from './effects/gateway.js';
import { ExportEffects } from './effects/export-effects.js';
import { RecordEffects } from './effects/record-effects.js';
import { HistoryPoints, type HistoryPointsOptions } from './history-points.js';
import { HighRiskRuns } from './high-risk/high-risk-runs.js';
import { makeFolder } from './home.js';
import type { HomePaths, KeyFolder, LocalState, SandboxVolume } from './home-paths.js';
import { interpretationOf } from './interpretation.js';
import { ledgerChecks } from './ledger-checks.js';
import { readLedgerSigner } from './ledger-key.js';
import { PolicyShelf } from './pinned-policy.js';
import { CheckEffects } from './sessions/check-effects.js';
import { SessionRuns } from './sessions/session-runs.js';
import { SpecSource } from './sessions/spec-source.js';
import { admittedEngine } from './storage/admitted-engine.js';
import { StorageGuard } from './storage/storage-guard.js';
import { RunRecordWriter } from './run-records.js';
import { shippedContract } from './shipped-contract.js';
import type { Ground, TurnpikeOptions } from './turnpike-options.js';

/** How long the writer waits for readers that remember something. */
const HISTORY_BUSY_MS = 20;

export type Closing = () => unknown;

export interface Wired {
  readonly shelf: PolicyShelf;
  readonly engine: TreeEngine;
  readonly agents: Agents;
  readonly highRisk: HighRiskRuns;
  readonly sessions: SessionRuns;
  readonly runRecords: RunRecordWriter;
  readonly history: HistoryCache | null;
  readonly points: HistoryPoints | null;
  readonly restarts: AutomaticRestarts | null;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
  readonly pace: Pace;
  readonly keepAlive: KeepAlive;
}

/** Every part, with the others that it needs; nothing has begun yet. */
export function wire(ground: Ground, options: TurnpikeOptions, opened: Closing[]): Wired {
  const { home, store, anchor, defer = nextTurn, snapshotEntries } = ground;
  const { keys = home, state = home } = ground;
  const { pace = systemPace(), keepAlive = keepingAlive } = ground;
  const { log = winstonLog('warn'), clock = systemClock(), ids = nanoidIds() } = options;
  const sandbox = sandboxOf(options, home);
  if (typeof options.sandbox !== 'object') opened.push(() => (sandbox as Partial<{ close(): void }>).close?.());
  const catalogue = catalogueFrom(options);
  const records = new RecordEffects(store.records, options.targets ?? []);
  opened.push(() => records.close());
  const calls = new BoundedCalls(clock, new CallLog(log, (tree_id) => engine.peek(tree_id)));
  const exportRoot = exportRootOf(options, state);
  const signer = () => (keys === null ? null : readLedgerSigner(keys.ledgerKey));
  const exports = new ExportEffects({ store, log, root: exportRoot, head: () => engine.head(), signer });
  const secrets = ground.secrets ?? secretsOf(keys);
  const checks = new CheckEffects({
    commands: commandsOf(options, { home, keys, state }, log),
    review: options.reviewer ?? null,
    calls,
    secrets,
    log,
  });
  const effects = new Gateway({ sandbox, records, exports, checks, calls, registered: options });
  const source = options.policies ?? policySource(options.contract ?? shippedContract());
  const shelf = new PolicyShelf(source, clock, catalogue);
  const agents = new Agents({ shelf, store, ids, log, keepAlive });
  const highRisk = new HighRiskRuns({ shelf, store, ids, clock, catalogue, pace, exports: exportRoot });
  const overlay = overlayOf(options, { home, keys, state });
  const runRecords = new RunRecordWriter({ store, clock, log, defer });
  opened.push(() => runRecords.close());
  const history = state === null ? null : sqliteHistoryCache(state.history, HISTORY_BUSY_MS);
  opened.push(() => history?.close());
  const points = history === null ? null : historyPoints(history, ground, { log, defer });
  opened.push(() => points?.close());
  const sessions = new SessionRuns({ store, shelf, ids, clock, pace, secrets, specs: new SpecSource(specFiles) });
  const restarts = options.restarts === 'automatic' ? new AutomaticRestarts(clock, log) : null;
  const storage = storageOf(ground, options, { clock, log });
  const listener = listeners({ agents, storage, highRisk, sessions, runRecords, points, restarts });
  const { engine: make = embeddedEngine } = ground;
  const engine = make({
    ...{ store, anchor, clock, log, effects, secrets, listener, defer, interpretation: interpretationOf(options, log) },
    beforeRecovery: storage.before(ledgerChecks(ground, records, log)),
    ...(overlay === undefined ? {} : { overlay }),
    ...(options.liveTreesMax === undefined ? {} : { liveTreesMax: options.liveTreesMax }),
    ...(snapshotEntries === undefined ? {} : { snapshotEntries }),
    ...(points === null ? {} : { follower: points }),
    meter: storage,
  });
  opened.push(() => agents.release());
  opened.push(() => calls.abort());
  opened.push(() => engine.stop());
  opened.push(() => checks.abort());
  opened.push(() => restarts?.close());
  const admitted = admittedEngine(engine, storage);
  for (const part of [agents, highRisk, sessions]) part.attach(admitted);
  const parts = { engine: admitted, shelf, agents, highRisk, sessions, runRecords, history, points, restarts };
  return { ...parts, ids, clock, log, pace, keepAlive };
}

function historyPoints(
  cache: HistoryCache,
  { store, pointEntries }: Ground,
  { log, defer }: Pick<HistoryPointsOptions, 'log' | 'defer'>,
): HistoryPoints {
  return new HistoryPoints({ store, cache, log, defer, ...(pointEntries === undefined ? {} : { pointEntries }) });
}

type Listening = Pick<Wired, 'agents' | 'highRisk' | 'sessions' | 'runRecords' | 'points' | 'restarts'> & {
  readonly storage: StorageGuard;
};

const listeners = ({
  agents,
  storage,
  highRisk,
  sessions,
  runRecords,
  points,
  restarts,
}: Listening): EngineListener => ({
  reply: (tree_id, reply) => {
    if (reply.run_id === tree_id) sessions.reply(tree_id, reply);
    else agents.reply(tree_id, reply);
  },
  ended: (tree_id, ending) => {
    agents.ended(tree_id, ending);
    highRisk.ended(ending);
    if (ending.run_id === tree_id) runRecords.ended();
  },
  failed: (error) => {
    storage.makeRoom();
    agents.failed(error);
    highRisk.failed();
    sessions.failed(error);
    runRecords.stop();
    points?.stop();
    restarts?.failed();
  },
  // The others hold nothing over a failure, and take runs up again by their ids.
  restarted: (recovery) => {
    runRecords.restart();
    points?.restart();
    restarts?.restarted(recovery);
  },
});

/** Where a full disk was the end of the last process, this one gets its reserve. */
function storageOf(
  { home, space }: Ground,
  { storage = {} }: TurnpikeOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): StorageGuard {
  const disk = space ?? (home === null ? null : diskSpace(home.reserve));
  const guard = new StorageGuard({ options: storage, space: disk, clock, log });
  guard.makeRoom();
  return guard;
}

const secretsOf = (keys: KeyFolder | null): Secrets => (keys === null ? passingKey() : sessionKey(keys.sessionKey));

interface Parts {
  readonly home: HomePaths | null;
  readonly keys: KeyFolder | null;
  readonly state: LocalState | null;
}

/** Where bundles are written; null where nothing says. */
export function exportRootOf({ exports }: TurnpikeOptions, state: LocalState | null): string | null {
  if (exports !== undefined) return resolve(exports);
  return state === null ? null : resolve(state.state, 'exports');
}

/** The overlay file needs both its key and its place. A home has no other overlay. */
function overlayOf({ overlay }: TurnpikeOptions, { home, keys, state }: Parts): OverlaySource | undefined {
  const isGiven = keys === null || state === null || (home === null && overlay !== undefined);
  const source = isGiven ? overlay : overlayFile(overlayFiles(state.overlay, keys.keys));
  return source === undefined ? undefined : comparedOverlay(source);
}

/** Where the commands of specs run: in the sandbox, where that is a folder. */
function commandsOf(
  { sandbox, wall = 'auto' }: TurnpikeOptions,
  { home, keys, state }: Parts,
  log: Log,
): CommandRunner {
  const root = typeof sandbox === 'object' ? undefined : (sandbox ?? home?.sandbox);
  if (root === undefined) return { run: () => Promise.resolve({ status: 'not_started', problem: 'CWD_REFUSED' }) };
  const hidden = [home?.home, keys?.keys, state?.state].filter((folder) => folder !== undefined);
  return commandRunner({
    root: resolve(root),
    wall,
    log,
    hidden,
    ...(state === null ? {} : { scratch: state.scratch }),
  });
}

function sandboxOf(options: TurnpikeOptions, home: SandboxVolume | null): Sandbox {
  if (typeof options.sandbox === 'object') return options.sandbox;
  const root = options.sandbox ?? home?.sandbox;
  if (root === undefined) throw new UsageError({ code: 'USAGE', message: '`store` needs `sandbox` as well' });
  makeFolder(root);
  return openSandbox({ root: resolve(root), unsafe: options.unsafe ?? false });
}
