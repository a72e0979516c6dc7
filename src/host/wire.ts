// The composition root of `openTurnpike`: creates the components and connects them. The ledger store and the head file
// come from a `StorageEnvironment`; `turnpike.ts` opens upstream servers and the control socket.

import { resolve } from 'node:path';
import { clearScratch } from '../sandbox/commands/command-scratch.js';
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
import type { ComparedRule, OverlayFact } from '../core/contract/policy/overlay.js';
import { checkArchives } from '../core/ledger/verification/check-archives.js';
import { checkExternalHead } from '../core/ledger/verification/check-external-head.js';
import { omitUndefined } from '../core/omit-undefined.js';
import { embeddedEngine } from '../engine/embedded.js';
import { isShared, sharedEngine } from '../engine/shared.js';
import type { EngineListener, TreeEngine } from '../engine/tree-engine.js';
import { usageError } from '../core/errors.js';
import type { Clock, ClockReading } from '../engine/ports/clock.js';
import type { CommandRunner } from '../engine/ports/effects/command-runner.js';
import type { Sandbox } from '../engine/ports/effects/sandbox.js';
import type { HistoryCache } from '../core/ledger/history-cache.js';
import type { Ids } from '../engine/ports/ids.js';
import type { Log } from '../engine/ports/log.js';
import type { OverlaySource } from '../engine/ports/policy-sources.js';
import type { KeepAlive } from '../engine/ports/pace.js';
import { Agents } from '../runtime/agents/agents.js';
import { AutomaticRestarts } from './automatic-restarts.js';
import { BoundedCalls } from '../runtime/effects/bounded-calls.js';
import { CallLog } from '../runtime/effects/call-log.js';
import { httpDecisionService } from '../system/network/http-decision-service.js';
import { EffectGateway } from './effect-gateway.js';
import { FEATURES } from '../features/declare-features.js';
import { RecordEffects } from '../runtime/effects/record-effects.js';
import { ReplayPointRecorder } from '../runtime/ledger/replay-point-recorder.js';
import { refuseCopied } from '../home/copy-marker.js';
import { makeFolder } from '../home/home.js';
import type { HomePaths, KeyFolder, LocalState, SandboxVolume } from '../home/home-paths.js';
import { DEFAULT_INTERPRETATION } from '../kernel/interpreter/default-interpreter.js';
import { inertInspector } from '../kernel/interpreter/inert-inspector.js';
import { TABLE_DRIVEN, type Interpretation } from '../kernel/interpreter/interpreter.js';
import { xstateInterpretation } from '../kernel/interpreter/xstate-actors.js';
import { personOf } from '../names/person-name.js';
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
  readonly replayPoints: ReplayPointRecorder | null;
  readonly restarts: AutomaticRestarts | null;
  readonly storage: StorageGuard;
  /** Null with a clock of the caller. */
  readonly readClock: (() => ClockReading) | null;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
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
  const { home, store, externalHeadStore, keys = home, state = home } = environment;
  const { defer = scheduleNextTurn, snapshotEntries, pointEntries } = environment;
  const { pace = systemPace(), keepAlive = keepProcessAlive } = environment;
  const { clock = systemClock(), ids = nanoidIds() } = options;
  const { log, tickObserver, tracing, effectObserver } = observation;
  const sandbox = createSandbox(options, home);
  if (typeof options.sandbox !== 'object') opened.push(() => (sandbox as Partial<{ close(): void }>).close?.());
  const records = new RecordEffects(store.records, options.targets ?? []);
  opened.push(() => records.close());
  const calls = new BoundedCalls(clock, new CallLog(log, (tree_id) => engine.peek(tree_id)));
  const secrets = environment.secrets ?? (keys === null ? ephemeralKey() : sessionKey(keys.sessionKey));
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
  const pointParts = { store, clock, log, defer, ...omitUndefined({ pointEntries }) };
  const replayPoints = history === null ? null : new ReplayPointRecorder({ ...pointParts, cache: history });
  opened.push(() => replayPoints?.close());
  const restarts = options.restarts === 'automatic' ? new AutomaticRestarts(clock, log) : null;
  const readClock = options.clock === undefined ? watchSystemClock() : null;
  const space = environment.space ?? (home === null ? null : diskSpace(home.reserve));
  const storage = new StorageGuard({ options: options.storage ?? {}, space, clock, log });
  // Right away if the disk is still low, as after a process that ended on a full disk.
  storage.releaseReserveIfLow();
  const parts = { agents, storage, features, runRecords, replayPoints, restarts, log };
  listeners.push(...createListeners(parts, options));
  const { engine: createEngine = isShared(store) ? sharedEngine : embeddedEngine } = environment;
  const { liveTreesMax } = options;
  const engine = createEngine({
    ...{ store, externalHeadStore, clock, log, effects, secrets, listeners, defer, tickObserver, meter: storage },
    interpretation: resolveInterpretation(options, log),
    beforeRecovery: storage.withReserve(createLedgerChecks(environment, records, log)),
    ...omitUndefined({ overlay, liveTreesMax, snapshotEntries, commitObserver: replayPoints ?? undefined }),
  });
  opened.push(() => calls.abort());
  opened.push(() => engine.stop());
  opened.push(...features.abortSteps);
  opened.push(() => restarts?.close());
  const admitted = new AdmittedEngine(engine, storage);
  agents.attach(admitted);
  const ledger = new LedgerReader(store, externalHeadStore, { history, pace, ...omitUndefined({ overlay }) });
  const access: HostAccess = {
    ...{ engine: admitted, agents, store, ledger, policyCache, catalogue, calls, commands, secrets },
    ...{ ids, clock, pace, log, telemetry: tracing, decisionService: httpDecisionService },
    signer: () => (keys === null ? null : readLedgerSigner(keys.ledgerKey)),
    exports: exportRootOf(options, state),
    options: { ...options },
  };
  return { ...parts, ledger, engine: admitted, policyCache, history, readClock, ids, clock, keepAlive };
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

/**
 * A rule with the person that it names (C87): the kernel compares persons, but has no Unicode tables. A name that
 * cannot be compared has no person: no actor can act or vote under it or another spelling of it.
 */
function comparedRule(given: ComparedRule): ComparedRule {
  const rule = { ...given };
  delete rule.person;
  const person = rule.actor_id === undefined ? 'empty' : personOf(rule.actor_id);
  return typeof person === 'string' ? rule : { ...rule, person };
}

/** A source of the embedding service. Returns the same object for the same fact of the source. */
function comparedOverlay(source: OverlaySource): OverlaySource {
  const known = new WeakMap<OverlayFact, OverlayFact>();
  return {
    current: () => {
      const fact = source.current();
      if (fact === null || fact.epoch === null) return fact;
      const made = known.get(fact) ?? { epoch: fact.epoch, rules: fact.rules.map(comparedRule) };
      known.set(fact, made);
      return made;
    },
  };
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

/**
 * How the engine runs the machines of its trees. Only the first failure of an inspector is logged, because a broken
 * inspector fails at every event.
 */
function resolveInterpretation(
  { interpreter = DEFAULT_INTERPRETATION.interpreter, inspect }: Pick<TurnpikeOptions, 'interpreter' | 'inspect'>,
  log: Log,
): Interpretation {
  if (interpreter !== 'xstate') return TABLE_DRIVEN;
  if (inspect === undefined) return xstateInterpretation();
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    log.warn('an inspector failed; runs continue, and later failures are not logged', { error });
  };
  return xstateInterpretation(inertInspector(inspect, report));
}

/** What an opening, and each restart, checks and prepares after the process becomes the writer and before recovery. */
function createLedgerChecks(environment: StorageEnvironment, records: RecordEffects, log: Log): () => Promise<void> {
  const { home, state = home, store, externalHeadStore } = environment;
  let isStarted = false;
  return async () => {
    // Again, now that this process is the writer: a copy may have ended since the home was opened.
    if (home !== null) refuseCopied(home.home);
    await checkArchives(store, externalHeadStore);
    await checkExternalHead(store, externalHeadStore, {
      acceptMissing: !isStarted && environment.acceptMissingHead === true,
    });
    await records.open();
    if ((await externalHeadStore.read()) === null) await writeFirstHead(environment, log);
    if (!isStarted) await environment.signHeads?.();
    isStarted = true;
    // By now only this process uses the local state, and no effect runs: no command uses a scratch folder.
    if (state !== null) await clearScratch(state.scratch, log);
  };
}

/** An empty ledger has no head if its creation was interrupted. Any other ledger without one was accepted above. */
async function writeFirstHead({ store, externalHeadStore }: StorageEnvironment, log: Log): Promise<void> {
  const head = await store.head();
  const { size, root } = head;
  if (size > 0) log.warn('no head was stored on this machine: the head of the ledger is accepted', { size, root });
  await externalHeadStore.write(head);
}
