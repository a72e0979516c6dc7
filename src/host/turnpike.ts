// Opens, assembles and closes a Turnpike. What only some services use is imported when it is first used, so that the
// others do not load it.

import { resolve } from 'node:path';
import { declareFeatures, FEATURES, findMember } from '../features/declare-features.js';
import type { StepResponse } from '../core/contract/run/response.js';
import type { PolicyVersions } from '../core/contract/shapes.js';
import { DRAIN_MS, waitAtMost } from '../engine/timers.js';
import type { Recovery } from '../engine/tree-engine.js';
import { usageError } from '../core/errors.js';
import type { Agent } from '../engine/ports/agent-exchange.js';
import { policyVersions } from '../core/policy/files/policy-versions.js';
import type { Policy } from '../core/policy/policy.js';
import type { ReplayReport } from '../kernel/replay/replay.js';
import type { ApprovedRequest } from '../runtime/ledger/pending-approvals.js';
import type { AgentLoopReport, RunAgentOptions } from '../runtime/agents/agent-loop.js';
import { reportAction, type ActionReport } from '../runtime/agents/action-reports.js';
import type { AgentOptions, AgentRun, SubmitOptions } from '../runtime/agents/agent-run.js';
import { startBoundRun } from '../runtime/agents/keyed-runs.js';
import { payloadBytes } from '../runtime/agents/caller-input.js';
import { RunRequests, type ProposalApproval, type RunRequest } from '../runtime/agents/run-requests.js';
import {
  readContent,
  readRequest,
  recordReading,
  type ContentRequest,
  type ReadRequestOptions,
} from '../runtime/content/read-content.js';
import { tryServeControl, type ControlHost, type ControlServer } from './control/control-server.js';
import type { ActionDecision, DecisionRequest } from '../runtime/agents/decision-request.js';
import { NO_REGISTRATIONS, type Catalogue, type Registrations } from '../core/contract/policy/catalogue.js';
import { NO_TRACING } from '../runtime/agents/agents.js';
import type { EngineObservation } from '../runtime/engine-observation.js';
import { RunLog } from '../runtime/run-log.js';
import { winstonLog } from '../system/winston-log.js';
import { DEFAULT_INTERPRETATION } from '../kernel/interpreter/default-interpreter.js';
import { INTERPRETERS } from '../kernel/interpreter/interpreter.js';
import { registrationsInLedger } from '../runtime/effects/ledger-registrations.js';
import { catalogueFrom } from '../runtime/effects/define-effects.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  CancellableRun,
  PromoteOptions,
  Resolution,
} from '../runtime/high-risk-options.js';
import {
  createHome,
  homePaths,
  isVacant,
  openHome,
  type HomePaths,
  type KeyFolder,
  type LocalState,
} from '../home/home.js';
import { openAddedTools, openMembers, requestsOf } from './feature-parts.js';
import { openGovernedActs, type GovernedActs } from './governed-acts.js';
import type { AddedMembers } from '../runtime/host-feature.js';
import type { LedgerReader } from '../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../core/contract/run/run-context.js';
import { remoteAgents, type RemoteAgents } from '../runtime/agents/remote-agents.js';
import type { Readiness } from './readiness/readiness.js';
import { createReadiness, type LedgerVitals } from './readiness/turnpike-readiness.js';
import { contractFolder, shippedContract } from '../runtime/shipped-contract.js';
import { openStorageEnvironment } from './storage-environment.js';
import type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';
import type { UpstreamProblem } from '../runtime/effects/tools-of-features.js';
import { exportRootOf, wire, type CloseStep } from './wire.js';

// What features add to `Turnpike` and its options belongs to them wherever they are named.
export type {} from './feature-types.js';

export type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';

/** An open instance, which `openTurnpike` returns. It owns its ledger until `close`. */
export interface Turnpike extends GovernedActs, AddedMembers {
  /** Null if the caller supplied the ledger store. */
  readonly home: HomePaths | null;
  /** The key folder: of the home, or the option `keys`. Null without one. */
  readonly keys: KeyFolder | null;
  /** The local state: of the home, or the option `state`. Null without one. */
  readonly state: LocalState | null;
  /** The folder of exports: of the home or local state, or the option `exports`. Null without one. */
  readonly exports: string | null;
  /** The unfinished work of the previous process that opening settled. */
  readonly recovery: Recovery;
  /** Whether a write to the ledger failed: until a restart, nothing is recorded or executed (D2). */
  readonly failed: boolean;
  /** The checks that tell whether this process can do all its work now. A service may add its own. */
  readonly readiness: Readiness;
  /** What a service reports about the ledger, for metrics. */
  readonly vitals: LedgerVitals;
  /**
   * Opens the ledger again after a failure and settles unfinished effects; all work then continues. Runs of attached
   * agents are interrupted; remote runs can be found again by id. Does nothing if nothing has failed.
   * @throws LedgerError LEDGER_UNAVAILABLE if the caller may retry; LEDGER_CONFLICT, LEDGER_TAMPERED,
   * LEDGER_BELOW_HEAD, LEDGER_LOCKED, InvariantError if only a new `openTurnpike` can continue
   */
  restart(): Promise<Recovery>;
  /**
   * The policy for new trees.
   * @throws PolicyError if it cannot be used
   */
  policy(): Promise<Policy>;
  /**
   * The versions of the policy and of the machines that a new run is pinned to.
   * @throws PolicyError
   */
  policyVersions(): Promise<PolicyVersions>;
  /** The upstream servers and tools that are unavailable, each with the reason. */
  readonly upstreams: readonly UpstreamProblem[];
  /** The other processes that act on the ledger through this one (D13); null if the control socket is off. */
  readonly control: Pick<ControlServer, 'connections' | 'retire'> | null;
  /**
   * Opens a run tree with one agent run. A run that policy denies is returned too: it has ended as `denied`. With a
   * `key`, attaches to the run of that key if there is one.
   * @throws RunError RUN_KEY_CONFLICT if the run of the key has another actor, person, role, lane or case, or another
   * value of an option that is given; UsageError
   */
  startAgent(options?: AgentOptions): Promise<AgentRun>;
  /** Lets an agent work in its run until it finishes or is stopped (docs/agents.md). */
  runAgent(agent: Agent, run: AgentRun, options?: RunAgentOptions): Promise<AgentLoopReport>;
  /** The requests for approval of an agent run, each with what has become of it; none if the run has ended. */
  requests(run_id: string): Promise<readonly RunRequest[]>;
  /** Whether policy asks for an approval of a proposal of a live agent run, and the request that it has made. */
  approvalOf(run_id: string, raw: string | Uint8Array): Promise<ProposalApproval>;
  /** Submits a proposal to a live agent run by its id. @see Agents.submit in src/runtime/agents/agents.ts */
  submit(run_id: string, raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse>;
  /** Like `submit`, but returns the response as the JSON text whose hash the ledger records. */
  respond(run_id: string, raw: string | Uint8Array, options?: SubmitOptions): Promise<string>;
  /**
   * Records the outcome of an action that the caller has executed itself (`defineExternalTool`). Nothing proves it, and
   * the record says so.
   * @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION if the run waits for no report; UsageError
   */
  report(report: ActionReport): Promise<void>;
  /**
   * Decides an action that the caller executes itself, and records the decision. Nothing is executed. `report` takes
   * the outcome of an allowed one.
   * @throws UsageError; RunError AGENT_BUSY
   */
  decide(request: DecisionRequest): Promise<ActionDecision>;
  /** The agent run of this id, if it is live. */
  agent(run_id: string): Promise<AgentRun | null>;
  /** Remote agent runs (D3) by their ids. They survive this process; the next process finds them again. */
  readonly remoteAgents: RemoteAgents;
  /** The time (ISO 8601) of the next timer of a run's tree; null without one, and for an unknown run. */
  nextTimer(run_id: string): Promise<string | null>;
  /** Starts a promotion run (S4 §10.1) in a tree of its own. A run that policy denies is returned too. */
  promote(options: PromoteOptions): Promise<CancellableRun>;
  /** Starts an export run (S4 §10.2): a BagIt bag of everything that the ledger stores of a case. */
  export(options: ExportOptions): Promise<CancellableRun>;
  /** The promotion or export run of this id, if it has not ended. */
  highRiskRun(run_id: string): Promise<CancellableRun | null>;
  /** Records a person's vote on requests of a run (D7). `ledger.approvals` lists pending requests. */
  approve(ballot: Ballot): Promise<readonly BallotResult[]>;
  /** Records the outcome of an action whose outcome was unknown (D8). */
  resolve(resolution: Resolution): Promise<void>;
  /** Returns content that came with an entry, and records in the ledger who reads it; null if it is withheld. */
  readContent(request: ContentRequest): Promise<Uint8Array | null>;
  /**
   * Returns the request that a person may approve, and records in the ledger who reads it; null if they may not see it.
   */
  readRequest(reading: ReadRequestOptions): Promise<ApprovedRequest | null>;
  /** Records that a person reads content which other code shows; false if the entry has no content of this hash. */
  recordReading(request: ContentRequest): Promise<boolean>;
  /** Runs, entries and their verification, as a reader sees them. */
  readonly ledger: LedgerReader;
  /** Folds the ledger, or one run tree, through the machines. */
  replay(run_id?: string): Promise<ReplayReport>;
  /** Interrupts attached agent runs, waits for work in flight, and releases the home. */
  close(): Promise<void>;
}

/**
 * Opens a ledger as its only writer and settles what an earlier process left unfinished.
 * @throws LedgerError LEDGER_LOCKED, LEDGER_BELOW_HEAD, LEDGER_TAMPERED; SandboxError UNSUPPORTED_PLATFORM; UsageError
 */
export const openTurnpike = async (options: TurnpikeOptions): Promise<Turnpike> =>
  openTurnpikeIn(await openEnvironment(options), options);

/** `openTurnpike` on an existing environment, which is closed with the Turnpike or if opening fails. */
export async function openTurnpikeIn(environment: StorageEnvironment, options: TurnpikeOptions): Promise<Turnpike> {
  declareFeatures();
  const { home, keys = home, state = home, store, externalHeadStore } = environment;
  // Close steps, run in reverse order at the end or when opening fails.
  const opened: CloseStep[] = [() => environment.release?.(), () => store.close(), () => externalHeadStore.close()];
  try {
    const added = await openAddedTools(FEATURES, options, opened);
    const own = { ...options, tools: [...(options.tools ?? []), ...added.tools] };
    const catalogue = catalogueFrom(own, await otherRegistrations(environment, options));
    const observation = await openEngineObservation(options, catalogue);
    const components = wire(environment, own, { opened, catalogue, observation });
    const { engine, agents, features, ledger, policyCache, runRecords, replayPoints, restarts } = components;
    const { ids, clock, log, keepAlive } = components;
    const recovery = await engine.start();
    const governed = await openGovernedActs(environment, keys, components);
    opened.push(() => waitAtMost(clock, DRAIN_MS, agents.close()));
    opened.push(...features.closeSteps);
    observation.observeApprovals(ledger, clock);
    const requests = new RunRequests(engine, clock);
    const reading = { engine, store, ids, clock, reader: ledger };
    let control: ControlServer | null = null;
    const turnpike: Turnpike = {
      ...{ home, keys, state, exports: exportRootOf(options, state), recovery, ledger, upstreams: added.problems },
      ...createReadiness(components, keys, externalHeadStore),
      ...governed,
      ...(await openMembers(FEATURES, features, options)),
      get failed() {
        return engine.hasFailed;
      },
      get control() {
        return control;
      },
      restart: () => engine.restart(),
      policy: async () => (await policyCache.current()).policy,
      policyVersions: async () => {
        const { pins, machines } = await policyCache.current();
        return policyVersions(pins, machines.hash_sha256);
      },
      startAgent: ({ key, ...agentOptions } = {}) =>
        key === undefined
          ? agents.start(agentOptions)
          : startBoundRun({ agents, engine, ledger }, { ...agentOptions, key }),
      runAgent: (agent, run, runOptions = {}) =>
        keepAlive(features.get('agentLoops').then((loops) => loops.run(agent, run, runOptions))),
      requests: (run_id) => requests.list(run_id),
      approvalOf: (run_id, raw) => requests.approvalOf(run_id, payloadBytes(raw)),
      submit: (run_id, raw, submitOptions) => agents.submit(run_id, raw, submitOptions),
      respond: (run_id, raw, submitOptions) => agents.respond(run_id, raw, submitOptions),
      report: (report) => reportAction({ engine, store }, report),
      decide: async (request) => (await features.get('decisions')).decide(request),
      agent: (run_id) => agents.find(run_id),
      remoteAgents: remoteAgents({ agents, engine, ledger }),
      nextTimer: async (run_id) => {
        const timers = (await engine.peek(rootRunIdOf(run_id)))?.timers ?? [];
        return timers.map(({ at }) => at).sort()[0] ?? null;
      },
      promote: async (promotion) => (await features.get('highRiskRuns')).promote(promotion),
      export: async (bundle) => (await features.get('highRiskRuns')).export(bundle),
      highRiskRun: async (run_id) => (await features.find('highRiskRuns'))?.find(run_id) ?? null,
      approve: async (ballot) => (await features.get('ballots')).submit(ballot),
      resolve: async (resolution) => (await features.get('ballots')).resolve(resolution),
      readContent: (request) => readContent(reading, request),
      readRequest: (request) => readRequest(reading, request),
      recordReading: (request) => recordReading(reading, request),
      replay: (run_id) => ledger.replay(run_id),
      close: () => keepAlive(closeAll(opened)),
    };
    control = await openControl(state, options, { turnpike, requests: requestsOf(FEATURES), log });
    opened.push(() => control?.close());
    runRecords.open();
    await replayPoints?.open((tree_id, work) => engine.inspect(tree_id, work));
    restarts?.open(engine);
    return turnpike;
  } catch (error) {
    await closeAll(opened).catch(() => undefined);
    throw error;
  }
}

const otherRegistrations = async (
  { store }: StorageEnvironment,
  { registrations = NO_REGISTRATIONS }: TurnpikeOptions,
): Promise<Registrations> => (registrations === 'ledger' ? registrationsInLedger(store) : registrations);

/**
 * What observes the engine: the service log always, and telemetry only with its option. Imports it before the engine
 * starts, so that it misses no event.
 * @throws UsageError for telemetry without the feature
 */
async function openEngineObservation(
  { telemetry, log = winstonLog('warn') }: Pick<TurnpikeOptions, 'telemetry' | 'log'>,
  catalogue: Catalogue,
): Promise<EngineObservation> {
  if (telemetry === undefined) {
    return {
      log,
      tickObserver: new RunLog({ log, catalogue }),
      tracing: NO_TRACING,
      effectObserver: null,
      observeApprovals: () => undefined,
    };
  }
  const observeEngine = findMember('observeEngine');
  if (observeEngine === undefined) throw usageError('telemetry: this installation has no feature that observes');
  const observe = await observeEngine();
  return observe({ telemetry, log, catalogue });
}

/** @returns null if the home has no folder for the socket, or the options want none */
async function openControl(
  state: LocalState | null,
  options: TurnpikeOptions,
  host: Omit<ControlHost, 'contract'>,
): Promise<ControlServer | null> {
  if (state === null || options.control === false) return null;
  const contract = options.policies === undefined ? contractFolder(options.contract ?? shippedContract()) : null;
  return tryServeControl(state.control, { ...host, contract });
}

/**
 * Closes every component, the newest first, even if one of them fails.
 * @throws the first error, at the end
 */
async function closeAll(opened: CloseStep[]): Promise<void> {
  const errors: unknown[] = [];
  for (const closeStep of opened.splice(0).reverse()) {
    try {
      await closeStep();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * The environment that the options name. Closes the store itself if it fails; once it has returned, `openTurnpikeIn`
 * closes the store.
 * @throws like `openTurnpike`
 */
export async function openEnvironment(options: TurnpikeOptions): Promise<StorageEnvironment> {
  try {
    checkOptions(options);
    if (options.store !== undefined) return await openStorageEnvironment(options.store, options);
  } catch (error) {
    await closeAll([() => options.store?.close()]).catch(() => undefined);
    throw error;
  }
  const home = resolve(options.home ?? '');
  const paths = isVacant(home) ? await createHome(home) : homePaths(home);
  return { home: paths, ...openHome(paths, { readOnly: false }) };
}

/**
 * Checks options against each other, before a file or the store is touched.
 * @throws UsageError USAGE
 */
function checkOptions(options: TurnpikeOptions): void {
  const { home, store, keys, state, sandbox, inspect } = options;
  const { interpreter = DEFAULT_INTERPRETATION.interpreter } = options;
  if ((home === undefined) === (store === undefined)) throw usageError('openTurnpike takes either `home` or `store`');
  if (home !== undefined && (keys !== undefined || state !== undefined)) {
    throw usageError('`keys` and `state` go with `store`: a home has its own');
  }
  if (store !== undefined && sandbox === undefined) throw usageError('`store` needs `sandbox` as well');
  if (!INTERPRETERS.includes(interpreter)) {
    throw usageError(`\`interpreter\` is one of ${INTERPRETERS.join(', ')}`);
  }
  if (inspect !== undefined && interpreter !== 'xstate') {
    throw usageError("`inspect` needs `interpreter: 'xstate'` as well");
  }
}
