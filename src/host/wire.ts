// The composition root of `openTurnpike`: creates the components and connects them. The ledger store and the head file
// come from a `StorageEnvironment`; `turnpike.ts` opens upstream servers and the control socket.

import { resolve } from 'node:path';
import { commandRunner } from '../sandbox/commands/walled-command-runner.js';
import { diskSpace } from '../system/files/file-disk-space.js';
import { scheduleNextTurn, systemPace, keepProcessAlive } from '../system/system-pace.js';
import { nanoidIds } from '../system/nanoid-ids.js';
import { overlayFile, overlayFiles } from '../home/policy/overlay-file.js';
import { policySource } from '../home/policy/home-policy.js';
import { ephemeralKey, sessionKey } from '../stores/keys/session-key.js';
import { openSandbox } from '../sandbox/files/file-sandbox.js';
import { sqliteHistoryCache } from '../stores/sqlite/sqlite-history-cache.js';
import { systemClock, watchSystemClock } from '../system/system-clock.js';
import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { DecisionQuery } from '../core/contract/policy/decision-points.js';
import { embeddedEngine } from '../engine/embedded.js';
import { isShared, sharedEngine } from '../engine/shared.js';
import type { EngineListener, EngineParts, TreeEngine } from '../engine/tree-engine.js';
import { usageError } from '../core/errors.js';
import type { Clock, ClockReading } from '../engine/ports/clock.js';
import type { CommandRunner } from '../engine/ports/effects/command-runner.js';
import type { Sandbox } from '../engine/ports/effects/sandbox.js';
import type { HistoryCache } from '../core/ledger/history-cache.js';
import type { Ids } from '../engine/ports/ids.js';
import type { Log } from '../engine/ports/log.js';
import type { OverlaySource } from '../engine/ports/policy-sources.js';
import type { KeepAlive, Pace } from '../engine/ports/pace.js';
import type { Secrets } from '../core/contract/secrets.js';
import { Agents } from '../runtime/agents/agents.js';
import { AutomaticRestarts } from './automatic-restarts.js';
import { BoundedCalls } from '../runtime/effects/bounded-calls.js';
import { CallLog } from '../runtime/effects/call-log.js';
import { httpDecisionService } from '../system/network/http-decision-service.js';
import { EffectGateway } from './effect-gateway.js';
import { FEATURES } from '../features/declare-features.js';
import { RecordEffects } from '../runtime/effects/record-effects.js';
import { ReplayPointRecorder, type ReplayPointRecorderOptions } from '../runtime/ledger/replay-point-recorder.js';
import { makeFolder } from '../home/home.js';
import type { HomePaths, KeyFolder, LocalState, SandboxVolume } from '../home/home-paths.js';
import { resolveInterpretation } from './interpretation.js';
import { createLedgerChecks } from './ledger-checks.js';
import type { EngineObservation } from '../runtime/engine-observation.js';
import { readLedgerSigner } from '../home/ledger-key.js';
import { FeatureParts } from './feature-parts.js';
import type { HostAccess, PartEvents } from '../runtime/host-feature.js';
import { LedgerReader } from '../runtime/ledger/ledger-reader.js';
import { PolicyCache } from '../runtime/policy-cache.js';
import { StorageGuard, AdmittedEngine } from '../runtime/storage/storage-guard.js';
import { RunRecordWriter } from '../runtime/ledger/run-record-writer.js';
import { shippedContract } from '../runtime/shipped-contract.js';
import type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';
import { comparedOverlay, comparedRule } from './compared-overlay.js';

/** How long a write to the history cache waits for a lock, in milliseconds. */
const HISTORY_BUSY_MS = 20;

export type CloseStep = () => unknown;

export interface TurnpikeComponents {
  readonly policyCache: PolicyCache;
  readonly engine: TreeEngine;
  readonly agents: Agents;
  /** The parts of features. */
  readonly features: FeatureParts;
  /** The reader of the ledger, as callers have it. */
  readonly ledger: LedgerReader;
  readonly runRecords: RunRecordWriter;
  readonly history: HistoryCache | null;
  /** The emergency overlay; undefined without a place for one. */
  readonly overlay: OverlaySource | undefined;
  readonly replayPoints: ReplayPointRecorder | null;
  readonly restarts: AutomaticRestarts | null;
  readonly storage: StorageGuard;
  /** Null with a clock of the caller. */
  readonly readClock: (() => ClockReading) | null;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
  readonly pace: Pace;
  readonly keepAlive: KeepAlive;
}

interface WiringContext {
  readonly opened: CloseStep[];
  readonly catalogue: Catalogue;
  readonly observation: EngineObservation;
}

/**
 * Creates every component and connects it to the others. Nothing has started yet. Adds a close step to `opened` for
 * each component that needs one.
 */
export function wire(
  environment: StorageEnvironment,
  options: TurnpikeOptions,
  { opened, catalogue, observation }: WiringContext,
): TurnpikeComponents {
  const { home, store, defer = scheduleNextTurn } = environment;
  const { keys = home, state = home } = environment;
  const { pace = systemPace(), keepAlive = keepProcessAlive } = environment;
  const { clock = systemClock(), ids = nanoidIds() } = options;
  const { log, tickObserver, tracing, effectObserver } = observation;
  const sandbox = createSandbox(options, home);
  if (typeof options.sandbox !== 'object') opened.push(() => (sandbox as Partial<{ close(): void }>).close?.());
  const records = new RecordEffects(store.records, options.targets ?? []);
  opened.push(() => records.close());
  const calls = new BoundedCalls(clock, new CallLog(log, (tree_id) => engine.peek(tree_id)));
  const secrets = environment.secrets ?? createSecrets(keys);
  const commands = createCommandRunner(options, { home, keys, state }, log);
  const listeners: EngineListener[] = [];
  const features = new FeatureParts(
    FEATURES,
    () => access,
    // `onLedgerFailed` stays the last: the callers of the parts are rejected before.
    (part) => listeners.splice(-1, 0, partListener(part)),
  );
  const decisionPoints = { ask: async (query: DecisionQuery) => (await features.get('decisionPoints')).ask(query) };
  const executors = { sandbox, records, calls, features: features.effects, decisionPoints };
  const effects = new EffectGateway({ ...executors, registrations: options, observer: effectObserver });
  const source = options.policies ?? policySource(options.contract ?? shippedContract());
  const policyCache = new PolicyCache(source, clock, catalogue);
  const agents = new Agents({ policyCache, store, ids, telemetry: tracing, log, keepAlive });
  const overlay = createOverlay(options, { home, keys, state });
  const runRecords = new RunRecordWriter({ store, clock, log, defer });
  opened.push(() => runRecords.close());
  const history = state === null ? null : sqliteHistoryCache(state.history, HISTORY_BUSY_MS);
  opened.push(() => history?.close());
  const replayPoints = history === null ? null : createReplayPointRecorder(history, environment, { clock, log, defer });
  opened.push(() => replayPoints?.close());
  const restarts = options.restarts === 'automatic' ? new AutomaticRestarts(clock, log) : null;
  const readClock = options.clock === undefined ? watchSystemClock() : null;
  const storage = createStorageGuard(environment, options, { clock, log });
  const parts = { agents, storage, features, runRecords, replayPoints, restarts, log };
  listeners.push(...createListeners(parts, options));
  const engineParts = { clock, log, effects, secrets, listeners, defer, replayPoints, overlay, tickObserver };
  const beforeRecovery = storage.withReserve(createLedgerChecks(environment, records, log));
  const engine = createEngine(environment, options, { ...engineParts, beforeRecovery, meter: storage });
  opened.push(() => calls.abort());
  opened.push(() => engine.stop());
  opened.push(...features.abortSteps);
  opened.push(() => restarts?.close());
  const admitted = new AdmittedEngine(engine, storage);
  agents.attach(admitted);
  const ledger = createReader(environment, { history, pace, overlay });
  const access: HostAccess = {
    ...{ engine: admitted, agents, store, ledger, policyCache, catalogue, calls, commands, secrets },
    ...{ ids, clock, pace, log, telemetry: tracing, decisionService: httpDecisionService },
    signer: () => (keys === null ? null : readLedgerSigner(keys.ledgerKey)),
    exports: exportRootOf(options, state),
    options: { ...options },
  };
  return { ...parts, ledger, engine: admitted, policyCache, history, overlay, readClock, ids, clock, pace, keepAlive };
}

interface ReaderParts {
  readonly history: HistoryCache | null;
  readonly pace: Pace;
  readonly overlay: OverlaySource | undefined;
}

const createReader = (
  { store, externalHeadStore }: StorageEnvironment,
  { history, pace, overlay }: ReaderParts,
): LedgerReader =>
  new LedgerReader(store, externalHeadStore, { history, pace, ...(overlay === undefined ? {} : { overlay }) });

interface WiredEngineParts extends Omit<EngineParts, 'store' | 'externalHeadStore' | 'overlay' | 'commitObserver'> {
  readonly overlay: OverlaySource | undefined;
  readonly replayPoints: ReplayPointRecorder | null;
}

/** Creates the engine of the environment with the settings in `options`. */
function createEngine(
  { store, externalHeadStore, snapshotEntries, ...environment }: StorageEnvironment,
  options: TurnpikeOptions,
  { overlay, replayPoints, ...parts }: WiredEngineParts,
): TreeEngine {
  const { engine = isShared(store) ? sharedEngine : embeddedEngine } = environment;
  return engine({
    ...parts,
    ...{ store, externalHeadStore, interpretation: resolveInterpretation(options, parts.log) },
    ...(overlay === undefined ? {} : { overlay }),
    ...(options.liveTreesMax === undefined ? {} : { liveTreesMax: options.liveTreesMax }),
    ...(snapshotEntries === undefined ? {} : { snapshotEntries }),
    ...(replayPoints === null ? {} : { commitObserver: replayPoints }),
  });
}

function createReplayPointRecorder(
  cache: HistoryCache,
  { store, pointEntries }: StorageEnvironment,
  parts: Pick<ReplayPointRecorderOptions, 'clock' | 'log' | 'defer'>,
): ReplayPointRecorder {
  return new ReplayPointRecorder({ store, cache, ...parts, ...(pointEntries === undefined ? {} : { pointEntries }) });
}

type ListenerParts = Pick<
  TurnpikeComponents,
  'agents' | 'storage' | 'runRecords' | 'replayPoints' | 'restarts' | 'log'
>;

/**
 * The listeners of the parts that always exist, in their order. Those without `onRestarted` keep no state across a
 * failure; they look up runs again by id.
 */
function createListeners(
  { agents, storage, runRecords, replayPoints, restarts, log }: ListenerParts,
  { onLedgerFailed }: Pick<TurnpikeOptions, 'onLedgerFailed'>,
): readonly EngineListener[] {
  const onFailed = (error: unknown): void => {
    try {
      onLedgerFailed?.(error);
    } catch (thrown) {
      log.error('onLedgerFailed has thrown', { error: thrown });
    }
  };
  return [
    { onFailed: () => storage.releaseReserveIfLow() },
    agents,
    {
      onTreeEnded: () => runRecords.onTreeEnded(),
      onFailed: () => runRecords.stop(),
      onRestarted: () => runRecords.restart(),
    },
    { onFailed: () => replayPoints?.stop(), onRestarted: () => replayPoints?.restart() },
    {
      onFailed: () => restarts?.onEngineFailed(),
      onRestarted: (recovery) => restarts?.onEngineRestarted(recovery),
    },
    { onFailed },
  ];
}

/** The listener of a part of a feature. */
const partListener = (part: PartEvents): EngineListener => ({
  onEnded: (_tree_id, ending) => part.onRunEnded?.(ending),
  onFailed: () => part.onEngineFailed?.(),
});

/** Releases the storage reserve right away if the disk is still low, as after a process that ended on a full disk. */
function createStorageGuard(
  { home, space }: StorageEnvironment,
  { storage = {} }: TurnpikeOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): StorageGuard {
  const disk = space ?? (home === null ? null : diskSpace(home.reserve));
  const guard = new StorageGuard({ options: storage, space: disk, clock, log });
  guard.releaseReserveIfLow();
  return guard;
}

const createSecrets = (keys: KeyFolder | null): Secrets =>
  keys === null ? ephemeralKey() : sessionKey(keys.sessionKey);

interface FolderParts {
  readonly home: HomePaths | null;
  readonly keys: KeyFolder | null;
  readonly state: LocalState | null;
}

/** @returns the directory for exported bags; null if neither the options nor a home directory names one */
export function exportRootOf({ exports }: TurnpikeOptions, state: LocalState | null): string | null {
  if (exports !== undefined) return resolve(exports);
  return state === null ? null : resolve(state.state, 'exports');
}

/** The overlay file needs both a key folder and local state. A home directory always uses its own overlay file. */
function createOverlay({ overlay }: TurnpikeOptions, { home, keys, state }: FolderParts): OverlaySource | undefined {
  const isGiven = keys === null || state === null || (home === null && overlay !== undefined);
  if (!isGiven) return overlayFile(overlayFiles(state.overlay, keys.keys), comparedRule);
  return overlay === undefined ? undefined : comparedOverlay(overlay);
}

/** Runs the commands of specs in the sandbox. Without a sandbox directory, no command can start. */
function createCommandRunner(
  { sandbox, wall = 'auto' }: TurnpikeOptions,
  { home, keys, state }: FolderParts,
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

function createSandbox(options: TurnpikeOptions, home: SandboxVolume | null): Sandbox {
  if (typeof options.sandbox === 'object') return options.sandbox;
  const root = options.sandbox ?? home?.sandbox;
  if (root === undefined) throw usageError('`store` needs `sandbox` as well');
  makeFolder(root);
  return openSandbox({ root: resolve(root), unsafe: options.unsafe ?? false });
}
