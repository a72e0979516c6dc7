// Creates agent runs and their handles, submits their proposals, and reports the ends of runs to their handles.

import type { RunTermination } from '../../../machines/emission.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { SubmissionResult, EngineListener, NewInput, Submission } from '../../engine/tree-engine.js';
import { checkedMarks } from '../../engine/tick/tick-inputs.js';
import type { CompletedStep } from '../../engine/trees/completed-step.js';
import { IntegrationError, InvariantError, LedgerError, RunError } from '../../core/errors.js';
import type { KnownRun, Tree } from '../../kernel/tree.js';
import type { Policy } from '../../core/policy/policy.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { KeepAlive } from '../../engine/ports/pace.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import { auditFailureResponse } from '../../core/step/concluded-step.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../deferred.js';
import { rootRunIdOf, type RunContext } from '../../core/contract/run/run-context.js';
import type { PolicyCache } from '../policy-cache.js';
import type { AdmittedEngine } from '../storage/storage-guard.js';
import type { AgentRun, RunEnding, SubmitOptions } from './agent-run.js';
import { requireBoundPayload } from './bound-inputs.js';
import {
  createStartAgentInput,
  checkSubmitOptions,
  createOpenInput,
  type SharingAgentOptions,
  payloadBytes,
  createProposalPrompt,
  createCancelInput,
  createStartPrompts,
  inputKeysOf,
  toRecordedInputId,
} from './caller-input.js';
import { chooseCase } from './choose-case.js';
import {
  runClosedError,
  runEndedError,
  runNotCancellableError,
  stepInFlightError,
  unknownRunError,
} from './run-errors.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';

/** Limit of live agent runs per process. */
const LIVE_AGENTS_MAX = 65_536;

/** How long a caller with the option `integrated` waits, in ms. */
const INTEGRATION_MS = 10_000;

const NO_RESPONSE = Promise.resolve(null);

interface LiveAgent {
  readonly run: KnownRun;
  readonly policy: Policy;
  readonly queue: AgentQueue;
  readonly finished: DeferredPromise<RunEnding>;
  proposals: number;
}

interface AgentsOptions {
  readonly policyCache: PolicyCache;
  readonly store: LedgerStore;
  readonly ids: Ids;
  readonly log: Log;
  readonly keepAlive: KeepAlive;
  readonly telemetry: RunTracing;
}

export class Agents implements EngineListener {
  readonly #options: AgentsOptions;
  readonly #live = new Map<string, LiveAgent>();
  /** Runs that may end before their handle exists, such as an agent that is denied at once. */
  readonly #starting = new Map<string, DeferredPromise<RunEnding>>();
  #engine: AdmittedEngine | null = null;

  constructor(options: AgentsOptions) {
    this.#options = options;
  }

  attach(engine: AdmittedEngine): void {
    this.#engine = engine;
  }

  /** @param keyedRoot the id of the run tree of a key: two workers that open it at once open one tree */
  async start(options: SharingAgentOptions, keyedRoot: string | null = null): Promise<AgentRun> {
    if (this.#live.size >= LIVE_AGENTS_MAX) {
      throw new RunError({ code: 'AGENT_BUSY', message: `${LIVE_AGENTS_MAX} agent runs are live: end some first` });
    }
    const pinned = await this.#options.policyCache.current();
    const root = keyedRoot ?? this.#options.ids.draw('run_');
    const case_id = chooseCase(root, options.case, [options.lane], pinned.policy);
    const { open, notes } = createOpenInput(root, { ...options, case_id }, pinned, this.#options.ids);
    const { refers, prompts } = createStartPrompts(options.prompts ?? [], open.case_id);
    const agent = { ...createStartAgentInput(root, options, pinned.policy), ...refers };
    this.#options.telemetry.openTree(root, options.trace);
    const run_id = `${root}.1`;
    const finished = ignoreRejection(createDeferred<RunEnding>());
    this.#starting.set(run_id, finished);
    try {
      // Both in one tick, so that they share a transaction.
      const isKeyed = keyedRoot !== null;
      const opened = this.#submitInput(root, open, [...pinned.materials, ...notes], isKeyed);
      const started = await this.#awaitStart(root, opened, this.#submitInput(root, agent, prompts, isKeyed));
      if (started.refused) return await this.#createDeniedRun(root, open.correlation_id);
      const tree = await this.#attachedEngine.peek(root).catch((error: unknown) => this.#abandon(root, error));
      return this.#createHandle(this.#track(tree, run_id, finished));
    } finally {
      this.#starting.delete(run_id);
    }
  }

  /**
   * Starts another agent run in a live tree, once for each `name`, which is the end of its actor.
   * @returns its id; null if policy denies it, or if the tree has ended
   */
  async startIn(root: string, name: string, options: SharingAgentOptions): Promise<string | null> {
    const policy = (await this.#attachedEngine.peek(root))?.policy ?? null;
    if (policy === null) return null;
    const input = { ...createStartAgentInput(root, options, policy), input_id: `${root}/agent/${name}` };
    if ((await this.#submitInput(root, input, [], true)).refused) return null;
    const tree = await this.#attachedEngine.peek(root);
    const run_id = tree?.runs.find(({ context }) => context.actor.actor_id === input.actor.actor_id)?.context.run_id;
    return run_id !== undefined && tree?.isLive(run_id) === true ? run_id : null;
  }

  /** The recorded step of a request; null for an unknown request, and while it is pending. */
  async findStep(run_id: string, inputId: string): Promise<CompletedStep | null> {
    const mark = await this.#findMark(run_id, inputId);
    return mark === null ? null : this.#attachedEngine.findStep(rootRunIdOf(run_id), run_id, mark.seq);
  }

  /** A root without an agent would never end: if the agent cannot be started, the root is cancelled. */
  async #awaitStart(
    root: string,
    opened: Promise<SubmissionResult>,
    started: Promise<SubmissionResult>,
  ): Promise<SubmissionResult> {
    const [first, second] = await Promise.allSettled([opened, started]);
    if (first.status === 'fulfilled' && second.status === 'fulfilled') return second.value;
    const reason: unknown = first.status === 'rejected' ? first.reason : (second as PromiseRejectedResult).reason;
    if (first.status === 'fulfilled') return this.#abandon(root, reason);
    throw reason;
  }

  async #abandon(root: string, why: unknown): Promise<never> {
    const input = { kind: 'cancel', run_id: root, input_id: `${root}/abandoned`, reason: 'abandoned' } as const;
    await this.#submitInput(root, input, []).catch(() => undefined);
    throw why;
  }

  async respond(run_id: string, raw: string | Uint8Array, options: SubmitOptions = {}): Promise<string> {
    const bytes = payloadBytes(raw);
    while (options.payloadSha256 === undefined) {
      const live = await this.#findLive(run_id);
      if (live === null) break;
      // Null: the engine was restarted meanwhile, and the run may go on.
      const response = await live.queue.enqueue(() => this.#propose(live, bytes, options));
      if (response !== null) return this.#confirm(run_id, response, options);
    }
    if ((await this.findAny(run_id)) === null) throw unknownRunError(run_id);
    return this.#confirm(run_id, await this.#recallOrReject(run_id, bytes, options), options);
  }

  /** @throws IntegrationError */
  async #confirm(run_id: string, response: string, { integrated }: SubmitOptions): Promise<string> {
    if (integrated !== true) return response;
    const confirmed = this.#attachedEngine.waitUntilIntegrated(rootRunIdOf(run_id), INTEGRATION_MS);
    if ((await this.#options.keepAlive(confirmed)) === null) throw new IntegrationError(response);
    return response;
  }

  async submit(run_id: string, raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse> {
    return parseOwnJson(await this.respond(run_id, raw, options)) as StepResponse;
  }

  /** A live agent run; restored from the ledger if this process has no handle on it. */
  async find(run_id: string): Promise<AgentRun | null> {
    const live = await this.#findLive(run_id);
    return live === null ? null : this.#createHandle(live);
  }

  async #findLive(run_id: string): Promise<LiveAgent | null> {
    const live = this.#live.get(run_id);
    if (live !== undefined) return live;
    const tree = await this.#attachedEngine.peek(rootRunIdOf(run_id));
    if (tree?.isLive(run_id) !== true || tree.run(run_id)?.context.run_kind !== 'agent') return null;
    return this.#track(tree, run_id, ignoreRejection(createDeferred<RunEnding>()));
  }

  /** The agent run with this id, ended or not. */
  async findAny(run_id: string): Promise<KnownRun | null> {
    const run = (await this.#attachedEngine.peek(rootRunIdOf(run_id)))?.run(run_id) ?? null;
    return run?.context.run_kind === 'agent' ? run : null;
  }

  async close(): Promise<void> {
    const attached = [...this.#live.values()].filter(({ run }) => run.link === 'attached');
    await Promise.allSettled(attached.map((live) => this.#interrupt(live)));
    for (const { finished } of this.#live.values()) finished.reject(runClosedError());
  }

  onEnded(_tree_id: string, ending: RunTermination): void {
    const { run_id } = ending;
    const finished = this.#live.get(run_id)?.finished ?? this.#starting.get(run_id);
    finished?.resolve({ run_id, state: ending.state, reason: ending.reason });
    this.#live.delete(run_id);
  }

  onFailed(error: unknown): void {
    this.#options.log.error('the ledger cannot be written; everything stops', { error });
    for (const live of this.#live.values()) {
      // D2: the ledger records the failure of the run when it is opened again; for this process it has ended now.
      const { run_id } = live.run.context;
      live.finished.resolve({ run_id, state: 'failed', reason: 'AUDIT_FAILURE' });
    }
    this.#live.clear();
  }

  get #attachedEngine(): AdmittedEngine {
    if (this.#engine === null) throw new InvariantError('the agents have no engine yet');
    return this.#engine;
  }

  #submitInput(
    tree_id: string,
    input: NewInput,
    materials: readonly Artifact[],
    rememberInputId = false,
  ): Promise<SubmissionResult> {
    const submission: Submission = { input, materials, rememberInputId, checked: false };
    return this.#attachedEngine.submit(tree_id, submission);
  }

  #submitProposal(
    tree_id: string,
    input: NewInput,
    materials: readonly Artifact[],
    rememberInputId: boolean,
  ): Promise<SubmissionResult> {
    // Every part of it was made here, or was checked on arrival.
    const submission: Submission = { input, materials, rememberInputId, checked: true, expectsResponse: true };
    return this.#attachedEngine.submit(tree_id, submission);
  }

  #track(tree: Tree | null, run_id: string, finished: DeferredPromise<RunEnding>): LiveAgent {
    const run = tree?.run(run_id);
    if (tree?.policy == null || run == null) throw new InvariantError(`agent run ${run_id} was not created`);
    // Input ids of this handle continue after those that the tree already contains.
    const proposals = tree.head.seq;
    const known = this.#live.get(run_id);
    const live = known ?? {
      run,
      policy: tree.policy,
      queue: new AgentQueue(),
      finished,
      proposals,
    };
    if (tree.isLive(run_id)) this.#live.set(run_id, live);
    return live;
  }

  /** The orchestrator itself was denied, so there is no agent run: the caller gets the orchestrator's end. */
  async #createDeniedRun(root: string, correlation_id: string): Promise<AgentRun> {
    const tree = await this.#attachedEngine.peek(root);
    if (tree?.hasEnded !== true) throw new InvariantError(`run tree ${root} refused its agent but has not ended`);
    return createEndedHandle({ run_id: root, root_run_id: root, correlation_id }, tree.ending);
  }

  #createHandle(live: LiveAgent): AgentRun {
    const { run_id, root_run_id, correlation_id } = live.run.context;
    const respond = async (raw: string | Uint8Array, options: SubmitOptions = {}): Promise<string> => {
      // Copied now, because the caller may change its buffer while it waits.
      const bytes = payloadBytes(raw);
      const proposed = await live.queue.enqueue(() => this.#propose(live, bytes, options));
      // After a restart, the client resumes a run by its id.
      const response = proposed ?? (await this.#recallOrReject(run_id, bytes, options));
      // The next proposal does not wait for the log.
      return this.#confirm(run_id, response, options);
    };
    return {
      run_id,
      root_run_id,
      correlation_id,
      respond,
      submit: async (raw, options) => parseOwnJson(await respond(raw, options)) as StepResponse,
      end: () => live.queue.enqueue(() => this.#finishWith(live, { kind: 'end', run_id, input_id: `${run_id}/end` })),
      cancel: (reason) => this.#cancel(live, reason),
      interrupt: () => this.#interrupt(live),
      finished: live.finished.promise,
    };
  }

  /** @returns null, with nothing done, if the handle is from before a restart or the run has ended */
  async #propose(live: LiveAgent, bytes: Uint8Array, options: SubmitOptions): Promise<string | null> {
    const { inputId, tokens, trace } = options;
    const { run_id, case_id } = live.run.context;
    const tree_id = rootRunIdOf(run_id);
    const exposure = live.run.exposure ?? 'decision';
    checkSubmitOptions(run_id, options);
    if (this.#live.get(run_id) !== live) return null;
    live.proposals += 1;
    const input_id = toRecordedInputId(inputId) ?? `${run_id}/p${live.proposals}`;
    const promptNote = createProposalPrompt(options, case_id);
    const content: Artifact = { kind: 'raw_payload', case_id, bytes };
    const payload = artifactRef(content);
    this.#options.telemetry.startStep(live.run.context, trace);
    try {
      const request = { kind: 'proposal', run_id, input_id, payload, tokens: tokens ?? null } as const;
      const input: NewInput = { ...request, ...promptNote.refers };
      const materials = [content, ...promptNote.materials];
      const submitted = await this.#submitProposal(tree_id, input, materials, inputId !== undefined);
      const { refused, repeat_of, response = NO_RESPONSE } = submitted;
      if (repeat_of !== null) return await this.#recall(run_id, repeat_of, bytes, options);
      // Refused although the run goes on: another step of it takes too long.
      if (refused) throw this.#live.get(run_id) === live ? stepInFlightError(run_id) : runEndedError(run_id);
      const answer = await this.#options.keepAlive(response);
      if (answer === null) throw runEndedError(run_id);
      return answer;
    } catch (error) {
      // D2: a step that could not be recorded still has its one response. Every other error is passed on.
      if (!(error instanceof LedgerError) || !this.#attachedEngine.hasFailed) throw error;
      return auditFailureResponse(bytes, live.policy, exposure);
    } finally {
      this.#options.telemetry.endStep(run_id);
    }
  }

  /** A repeated request still gets its recorded response if the run has ended in the meantime. */
  async #recallOrReject(run_id: string, bytes: Uint8Array, options: SubmitOptions): Promise<string> {
    const mark = await this.#findMark(run_id, options.inputId);
    if (mark === null) throw runEndedError(run_id);
    return this.#recall(run_id, mark.seq, bytes, options);
  }

  async #findMark(run_id: string, inputId: string | undefined): Promise<{ readonly seq: number } | null> {
    return (await checkedMarks(this.#options.store, inputKeysOf(rootRunIdOf(run_id), inputId))).find(Boolean) ?? null;
  }

  /** The response to the proposal at `seq`, once its step has ended. @throws RunError IDEMPOTENCY_CONFLICT */
  async #recall(run_id: string, seq: number, bytes: Uint8Array, options: SubmitOptions): Promise<string> {
    const engine = this.#attachedEngine;
    await requireBoundPayload({ store: this.#options.store, engine }, { run_id, seq, bytes }, options);
    const found = await this.#options.keepAlive(engine.awaitStep(rootRunIdOf(run_id), run_id, seq));
    if (found === null) throw runEndedError(run_id);
    return found.response;
  }

  async #finishWith(live: LiveAgent, input: NewInput): Promise<RunEnding> {
    if (this.#live.get(input.run_id) === live) await this.#submitInput(rootRunIdOf(input.run_id), input, []);
    return live.finished.promise;
  }

  async #cancel(live: LiveAgent, reason: string): Promise<RunEnding> {
    const { run_id, root_run_id } = live.run.context;
    // In a session, the root run of a step is one run of a larger tree.
    const tree_id = rootRunIdOf(run_id);
    const tree = await this.#attachedEngine.peek(tree_id);
    // After a restart the run may continue, and only a new handle can cancel it. An ended run records the refused
    // cancel.
    if (this.#live.get(run_id) !== live && tree?.isLive(run_id) === true) throw runEndedError(run_id);
    const { input, materials } = createCancelInput(live.run.context, tree, reason);
    const { refused } = await this.#submitInput(tree_id, input, materials);
    // Refused because the run is already being cancelled, which is what the caller wants.
    if (refused && !this.#live.has(run_id)) throw runNotCancellableError(root_run_id);
    return live.finished.promise;
  }

  #interrupt(live: LiveAgent): Promise<RunEnding> {
    const { run_id } = live.run.context;
    if (this.#live.get(run_id) !== live) return Promise.reject(runEndedError(run_id));
    return this.#finishWith(live, { kind: 'interrupt', run_id, input_id: `${run_id}/interrupt` });
  }
}

/** The handle of a run that has ended. Without `proposing`, it refuses every proposal. */
export function createEndedHandle(
  { run_id, root_run_id, correlation_id }: Pick<RunContext, 'run_id' | 'root_run_id' | 'correlation_id'>,
  { state, reason }: Omit<RunEnding, 'run_id'>,
  proposing: Partial<Pick<AgentRun, 'submit' | 'respond'>> = {},
): AgentRun {
  const refuse = (): Promise<never> => Promise.reject(runEndedError(run_id));
  const finished = Promise.resolve({ run_id, state, reason });
  const end = () => finished;
  const ids = { run_id, root_run_id, correlation_id };
  return { ...ids, submit: refuse, respond: refuse, ...proposing, end, cancel: refuse, interrupt: end, finished };
}

/** The limit of queued proposals of one agent run (D4). The next one fails with AGENT_BUSY, which is not a step. */
const QUEUED_PROPOSALS_MAX = 64;

/** Processes one proposal at a time, in order of arrival. */
class AgentQueue {
  #last: Promise<unknown> = Promise.resolve();
  #queued = 0;

  /** @throws RunError AGENT_BUSY */
  async enqueue<T>(work: () => Promise<T>): Promise<T> {
    if (this.#queued > QUEUED_PROPOSALS_MAX) {
      throw new RunError({
        code: 'AGENT_BUSY',
        message: `${QUEUED_PROPOSALS_MAX} proposals already wait for this agent run: wait for a response before the next one`,
      });
    }
    this.#queued += 1;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#queued -= 1;
    }
  }
}

/** What a starter of runs reports to telemetry. The reports never throw. */
export interface RunTracing {
  /** Called before the tree is opened. */
  openTree(tree_id: string, trace: TraceCarrier | undefined): void;
  /** A step begins: its proposal is about to be submitted. */
  startStep(run: RunContext, trace: TraceCarrier | undefined): void;
  /** Ends the observation of the step of an agent run that has no outcome; does nothing if it has one. */
  endStep(run_id: string): void;
}

/** Without telemetry. */
export const NO_TRACING: RunTracing = {
  openTree: () => undefined,
  startStep: () => undefined,
  endStep: () => undefined,
};
