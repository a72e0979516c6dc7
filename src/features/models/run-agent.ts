// The loops of agents in one open Turnpike: ask an agent, submit its proposal to its run unchanged, and pass the
// response back. Nothing that an agent writes controls the loop; responses and limits do (`loop-state.ts`).

import { parseOwnJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { RunError, usageError } from '../../core/errors.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type {
  Agent,
  AgentProposal,
  AgentSchemas,
  AgentTurn,
  RequestOutcome,
} from '../../engine/ports/agent-exchange.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { AgentLoopReport, AgentLoops, RunAgentOptions, StopReason } from '../../runtime/agents/agent-loop.js';
import type { AgentRun, RunEnding } from '../../runtime/agents/agent-run.js';
import { checkTokens, payloadBytes, PROMPT_BYTES_MAX } from '../../runtime/agents/caller-input.js';
import { RunRequests, type RunRequest } from '../../runtime/agents/run-requests.js';
import { createDeferred } from '../../runtime/deferred.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import { stepId } from '../../../machines/agent.js';
import { agentSchemas, instructionsFor } from './agent-schemas.js';
import {
  decideNextTurn,
  resolveLoopSettings,
  type LoopSettings,
  applyExchange,
  INITIAL_STATE,
  type LoopState,
  type RecordedExchange,
  type RunHistory,
} from './loop-state.js';

export const openAgentLoops = (host: HostAccess): AgentLoops => ({
  run: (agent, run, options) => runAgent(host, agent, run, options),
});

/**
 * Runs an agent until it finishes or is stopped. The run has then ended too: a stopped one is cancelled with the
 * reason, unless `whenStopped` says otherwise. Failures of the agent are reported, not thrown.
 * @throws UsageError for options out of range; RunError CLOSED, AGENT_BUSY; LedgerError
 */
async function runAgent(
  host: HostAccess,
  agent: Agent,
  run: AgentRun,
  options: RunAgentOptions,
): Promise<AgentLoopReport> {
  const { onRequest, clock = host.clock, ids = host.ids } = options;
  const requests = new RunRequests(host.engine, host.clock);
  const schemas = await agentSchemas(host.ledger, run);
  const settings = resolveLoopSettings(options);
  const watch = new RunWatch(run, options.signal);
  try {
    const loop = { host, schemas, requests, agent, run, settings, watch, clock, ids, onRequest };
    const { reason, answer, counts, error } = await runTurns(loop);
    return { reason, answer, counts, ending: await endRun(run, reason, settings), error };
  } finally {
    watch.close();
  }
}

interface LoopContext {
  readonly host: HostAccess;
  readonly schemas: AgentSchemas;
  readonly requests: RunRequests;
  readonly agent: Agent;
  readonly run: AgentRun;
  readonly settings: LoopSettings;
  readonly watch: RunWatch;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onRequest: RunAgentOptions['onRequest'];
}

type LoopStop = Omit<AgentLoopReport, 'ending'>;

async function runTurns(loop: LoopContext): Promise<LoopStop> {
  const { schemas, settings, watch } = loop;
  const turnBase = { instructions: instructionsFor(schemas, settings), schemas, task: settings.task };
  const begun = await restoreLoop(loop);
  if ('reason' in begun) return { ...begun, answer: null, counts: INITIAL_STATE.counts };
  let { state, last } = begun;
  for (;;) {
    let again: AgentProposal | null = null;
    if (last !== null) {
      const request = await settle(loop, last);
      const outcome = 'outcome' in request ? request.outcome : null;
      state = applyExchange(state, last, outcome, settings.conversationBytes);
      const { answer, counts } = state;
      if (answer !== null) return { reason: 'finished', answer, counts, error: null };
      if ('reason' in request) return { reason: request.reason, answer: null, counts, error: null };
      again = outcome === 'approved' ? proposeAgain(last, drawProposalId(loop.ids)) : null;
    }
    const { counts, conversation, last_response } = state;
    const next = watch.interruption ?? decideNextTurn(counts, settings);
    if (next !== 'ask') return { reason: next, answer: null, counts, error: null };
    const fresh_id = drawProposalId(loop.ids);
    const proposal = again ?? (await requestProposal(loop, { ...turnBase, conversation, last_response, fresh_id }));
    if ('reason' in proposal) return { ...proposal, answer: null, counts };
    const outcome = await propose(loop, proposal, counts.steps === 0 ? promptOf(turnBase) : null);
    if ('reason' in outcome) return { ...outcome, answer: null, counts };
    last = { raw: proposal.raw, response: outcome.response, tokens: proposal.tokens, isRepeated: again !== null };
  }
}

/** An exchange that may have made a request. */
interface LastExchange extends RecordedExchange {
  /** Whether the loop itself has proposed an approved request again. */
  readonly isRepeated: boolean;
}

/**
 * The state from which a loop continues. The run of a key is continued from its ledger; any other loop begins.
 */
async function restoreLoop(
  loop: LoopContext,
): Promise<{ readonly state: LoopState; readonly last: LastExchange | null } | TurnInterruption> {
  const { run, settings } = loop;
  if (run.resumed === undefined) return { state: INITIAL_STATE, last: null };
  let history = await readHistory(loop.host, run.run_id);
  // A step of an earlier process, which waits for a vote or for its effect.
  while (history.isStepping) {
    const interruption = await pauseFor(loop, STEP_POLL_MS);
    if (interruption === 'aborted') return { reason: interruption, error: null };
    history = await readHistory(loop.host, run.run_id);
  }
  let state = INITIAL_STATE;
  for (const exchange of history.exchanges.slice(0, -1)) {
    const outcome = await findPastOutcome(loop, exchange);
    state = applyExchange(state, exchange, outcome, settings.conversationBytes);
  }
  const last = history.exchanges.at(-1);
  return { state, last: last === undefined ? null : { ...last, isRepeated: false } };
}

const STEP_POLL_MS = 200;

/** An approval that has not helped a repeated proposal, e.g. of an approver who was suspended, is not tried again. */
async function settle(loop: LoopContext, last: LastExchange): Promise<RequestWaitResult> {
  const result = await awaitRequest(loop, last);
  return last.isRepeated && 'outcome' in result && result.outcome === 'approved' ? { outcome: null } : result;
}

/** The approved proposal under another id: its digest, which people have voted on, is the same. It costs no tokens. */
function proposeAgain({ raw }: RecordedExchange, id: string): AgentProposal {
  const proposal = parseOwnJson(Buffer.from(payloadBytes(raw)).toString('utf8')) as Readonly<Record<string, unknown>>;
  return { raw: JSON.stringify({ ...proposal, id }), tokens: 0 };
}

type TurnInterruption = Pick<LoopStop, 'reason' | 'error'>;

/** The agent's proposal, unless another event comes first. An agent that does not return is abandoned. */
async function requestProposal(
  { agent, settings, watch, clock }: LoopContext,
  turn: AgentTurn,
): Promise<AgentProposal | TurnInterruption> {
  const controller = new AbortController();
  const timeout = createDeferred<'turn_timeout'>();
  const cancelTimer = clock.wake(clock.now() + settings.turnMs, () => timeout.resolve('turn_timeout'));
  const proposal = Promise.resolve()
    .then(() => agent.propose(turn, controller.signal))
    .then(validateProposal)
    .catch((error: unknown): TurnInterruption => ({ reason: 'agent_failed', error }));
  try {
    const first = await watch.raceWith(Promise.race([proposal, timeout.promise]), ['run_ended', 'aborted']);
    return typeof first === 'string' ? { reason: first, error: null } : first;
  } finally {
    cancelTimer();
    controller.abort();
  }
}

/**
 * Rejects only values that cannot be a payload; the pipeline decides about proposals.
 * @throws UsageError
 */
function validateProposal({ raw, tokens }: AgentProposal): AgentProposal {
  // Agents without types may return any value.
  if (typeof raw !== 'string' && !((raw as unknown) instanceof Uint8Array)) {
    throw usageError('an agent proposes text or bytes');
  }
  // Missing counts as null: an agent that reports no tokens must not count as one that costs nothing.
  const reported = (tokens as number | null | undefined) ?? null;
  checkTokens(reported ?? undefined);
  return { raw: payloadBytes(raw), tokens: reported };
}

/** The first prompt of the agent; a longer text is recorded only if its caller passes it. */
function promptOf({ instructions, task }: Pick<AgentTurn, 'instructions' | 'task'>): string | null {
  const text = task === null ? instructions : `${instructions}\n\n${task}`;
  return Buffer.byteLength(text) <= PROMPT_BYTES_MAX ? text : null;
}

async function propose(
  { run, watch }: LoopContext,
  { raw, tokens }: AgentProposal,
  prompt: string | null,
): Promise<{ readonly response: string } | TurnInterruption> {
  try {
    // Does not wait for the end of the run: a FINISH ends it, and its response must not get lost.
    const options = omitUndefined({ tokens: tokens ?? undefined, prompt: prompt ?? undefined });
    const outcome = run.respond(raw, options).then((response) => ({ response }));
    const first = await watch.raceWith(outcome, ['aborted']);
    return typeof first === 'string' ? { reason: first, error: null } : first;
  } catch (error) {
    if (error instanceof RunError && error.code === 'RUN_ENDED') return { reason: 'run_ended', error: null };
    throw error;
  }
}

async function endRun(run: AgentRun, reason: StopReason, { whenStopped }: LoopSettings): Promise<RunEnding | null> {
  if (reason === 'finished' || reason === 'run_ended') return run.finished;
  if (whenStopped === 'leave' || reason === 'approval_pending') return null;
  try {
    return await run.cancel(reason);
  } catch (error) {
    // The run has ended by itself in the meantime.
    if (error instanceof RunError && ENDED_CODES.includes(error.code)) return run.finished;
    throw error;
  }
}

const ENDED_CODES: readonly RunError['code'][] = ['INVALID_STATE_TRANSITION', 'RUN_ENDED'];

/** A UUID of version 8 (RFC 9562), made from a random id. */
function drawProposalId(ids: Ids): string {
  const hex = sha256(ids.draw('inp_'));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** @throws LedgerError LEDGER_ERASED if content of the run is unavailable */
async function readHistory(
  { engine, store }: Pick<HostAccess, 'engine' | 'store'>,
  run_id: string,
): Promise<RunHistory> {
  const tree_id = rootRunIdOf(run_id);
  const tree = await engine.peek(tree_id);
  const exchanges: RecordedExchange[] = [];
  for await (const entry of store.tree(tree_id)) {
    const tokens = tokensOfProposal(entry, run_id);
    if (tokens === undefined) continue;
    const step = await engine.findStep(tree_id, run_id, entry.seq);
    // An input that the run has refused, or one that is not answered yet.
    if (step === null) continue;
    const [payload] = requireContent(await store.artifactsOf(entry));
    exchanges.push({ raw: payload?.bytes ?? new Uint8Array(), response: step.response, tokens });
  }
  return { exchanges, isStepping: tree?.isLive(stepId(run_id)) === true };
}

/** The tokens that a proposal of the run has reported, null for none; undefined for another entry. */
function tokensOfProposal({ type, text }: TreeEntry, run_id: string): number | null | undefined {
  if (type !== 'input' || !text.includes('"kind":"proposal"')) return undefined;
  const { body } = parseOwnJson(text) as {
    readonly body: { readonly kind: string; readonly run_id: string; readonly tokens: number | null };
  };
  return body.kind === 'proposal' && body.run_id === run_id ? body.tokens : undefined;
}

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 1_000;

/** The outcome of the request, or why the loop no longer waits for it. */
type RequestWaitResult =
  { readonly outcome: RequestOutcome | null } | { readonly reason: Interruption | 'approval_pending' };

/**
 * Waits until people have decided about the request for approval that a proposal made. The agent is not called
 * meanwhile. The votes may come from another process, so the loop looks for them, at growing intervals.
 * @returns no outcome if the proposal was not denied, or made no request
 */
async function awaitRequest(loop: LoopContext, exchange: RecordedExchange): Promise<RequestWaitResult> {
  const { clock, settings, onRequest } = loop;
  let request = await findRequest(loop, exchange);
  if (request?.status !== 'open') return { outcome: outcomeOf(request) };
  onRequest?.(request);
  const until = settings.waitMs === null ? Infinity : clock.now() + settings.waitMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(2 * pause, LAST_POLL_MS)) {
    const left = until - clock.now();
    if (left <= 0) return { reason: 'approval_pending' };
    const interruption = await pauseFor(loop, Math.min(pause, left));
    if (interruption !== null) return { reason: interruption };
    request = await findRequest(loop, exchange);
    if (request?.status !== 'open') return { outcome: outcomeOf(request) };
  }
}

/** What became of the request of an earlier exchange, whose approval may have been used since. It is not waited for. */
async function findPastOutcome(loop: LoopContext, exchange: RecordedExchange): Promise<RequestOutcome | null> {
  const request = await findRequest(loop, exchange);
  return request?.status === 'consumed' ? 'approved' : outcomeOf(request);
}

/** The request that a proposal has made; null if it was not denied, or has made none. */
async function findRequest(
  { requests, run }: LoopContext,
  { raw, response }: RecordedExchange,
): Promise<RunRequest | null> {
  const answer = parseOwnJson(response) as StepResponse;
  const isDenied = 'decision' in answer ? answer.decision === 'DENY' : answer.outcome === 'DENIED';
  return isDenied ? requests.find(run.run_id, payloadBytes(raw)) : null;
}

function outcomeOf(request: RunRequest | null): RequestOutcome | null {
  switch (request?.status) {
    case 'granted':
      return 'approved';
    case 'rejected':
    case 'expired':
      return request.status;
    default:
      return null;
  }
}

/** Lets time pass. @returns what has ended the pause; null if it was the time */
async function pauseFor({ clock, watch }: LoopContext, ms: number): Promise<Interruption | null> {
  const timer = createDeferred<null>();
  const cancel = clock.wake(clock.now() + ms, () => timer.resolve(null));
  try {
    return await watch.raceWith(timer.promise, ['run_ended', 'aborted']);
  } finally {
    cancel();
  }
}

/** Events that can interrupt a loop while it waits. */
type Interruption = 'run_ended' | 'aborted';

/** Observes the end of a run and the signal of the caller. */
class RunWatch {
  readonly #signal: AbortSignal | undefined;
  readonly #abort = (): void => this.#note('aborted');
  readonly #events: Interruption[] = [];
  #failure: { readonly error: unknown } | null = null;
  /**
   * Settles the present work, and is removed with it: a promise for the whole loop would keep every proposal raced with
   * it in memory.
   */
  #settle: (() => void) | null = null;

  constructor({ finished }: Pick<AgentRun, 'finished'>, signal: AbortSignal | undefined) {
    this.#signal = signal;
    finished.then(
      () => this.#note('run_ended'),
      (error: unknown) => {
        this.#failure = { error };
        this.#settle?.();
      },
    );
    if (signal?.aborted === true) this.#abort();
    else signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /** The first event so far, or null. */
  get interruption(): Interruption | null {
    return this.#events[0] ?? null;
  }

  /**
   * Resolves with the result of the work, or with an event of `relevant` that happens first. The work then continues
   * unobserved. Rejects when the process releases the run. Only one work at a time.
   */
  raceWith<T>(work: Promise<T>, relevant: readonly Interruption[]): Promise<T | Interruption> {
    const raced = createDeferred<T | Interruption>();
    const settle = (): void => {
      const event = this.#events.find((one) => relevant.includes(one));
      if (event !== undefined) raced.resolve(event);
      if (this.#failure !== null) raced.reject(this.#failure.error);
    };
    this.#settle = settle;
    settle();
    const clear = (): void => {
      if (this.#settle === settle) this.#settle = null;
    };
    void work
      .then(
        (value) => raced.resolve(value),
        (error: unknown) => raced.reject(error),
      )
      .finally(clear);
    return raced.promise;
  }

  close(): void {
    this.#signal?.removeEventListener('abort', this.#abort);
  }

  #note(event: Interruption): void {
    this.#events.push(event);
    this.#settle?.();
  }
}
