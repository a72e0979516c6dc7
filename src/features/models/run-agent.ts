// The bounded loop: ask an agent, submit its proposal to its run unchanged, and pass the response back. Nothing that an
// agent writes controls the loop; responses and limits do (`loop-state.ts`).

import { nanoidIds } from '../../system/nanoid-ids.js';
import { systemClock } from '../../system/system-clock.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { RunError, usageError } from '../../core/errors.js';
import type { Agent, AgentProposal, AgentSchemas, AgentTurn } from '../../engine/ports/agent-exchange.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { AgentLoopReport, RunAgentOptions, StopReason } from '../../runtime/agents/agent-loop.js';
import type { AgentRun, RunEnding } from '../../runtime/agents/agent-run.js';
import { createDeferred } from '../../runtime/deferred.js';
import { checkTokens, payloadBytes, PROMPT_BYTES_MAX } from '../../runtime/agents/caller-input.js';
import { awaitRequest, findPastOutcome, pauseFor, type RequestWaitResult } from './await-request.js';
import { instructionsFor } from './instructions.js';
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
import type { RunRequest } from '../../runtime/agents/run-requests.js';
import { watchRun, type RunWatch } from './run-watch.js';

/** What a loop reads of its run. */
export interface RunReader {
  readonly schemas: AgentSchemas;
  /** The request that a payload has made in the run; null if it has made none. */
  readonly findRequest: (run_id: string, payload: Uint8Array) => Promise<RunRequest | null>;
  readonly readHistory: (run_id: string) => Promise<RunHistory>;
}

/**
 * Runs an agent until it finishes or is stopped. The run has then ended too: a stopped one is cancelled with the
 * reason, unless `whenStopped` says otherwise. Failures of the agent are reported, not thrown.
 * @throws UsageError for options out of range; RunError CLOSED, AGENT_BUSY; LedgerError
 */
export async function runAgent(
  agent: Agent,
  run: AgentRun,
  options: RunAgentOptions & { readonly reader: RunReader },
): Promise<AgentLoopReport> {
  const { reader, onRequest, clock = systemClock(), ids = nanoidIds() } = options;
  const settings = resolveLoopSettings(options);
  const watch = watchRun(run, options.signal);
  try {
    const { reason, answer, counts, error } = await runTurns({
      agent,
      run,
      reader,
      settings,
      watch,
      clock,
      ids,
      onRequest,
    });
    return { reason, answer, counts, ending: await endRun(run, reason, settings), error };
  } finally {
    watch.close();
  }
}

interface LoopContext {
  readonly agent: Agent;
  readonly run: AgentRun;
  readonly reader: RunReader;
  readonly settings: LoopSettings;
  readonly watch: RunWatch;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onRequest: RunAgentOptions['onRequest'];
}

type LoopStop = Omit<AgentLoopReport, 'ending'>;

async function runTurns(loop: LoopContext): Promise<LoopStop> {
  const { reader, settings, watch } = loop;
  const { schemas } = reader;
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
  const { run, reader, settings } = loop;
  if (run.resumed === undefined) return { state: INITIAL_STATE, last: null };
  let history = await reader.readHistory(run.run_id);
  // A step of an earlier process, which waits for a vote or for its effect.
  while (history.isStepping) {
    const interruption = await pauseFor(loop, STEP_POLL_MS);
    if (interruption === 'aborted') return { reason: interruption, error: null };
    history = await reader.readHistory(run.run_id);
  }
  let state = INITIAL_STATE;
  for (const exchange of history.exchanges.slice(0, -1)) {
    const outcome = await findPastOutcome(waitOf(loop).find, exchange);
    state = applyExchange(state, exchange, outcome, settings.conversationBytes);
  }
  const last = history.exchanges.at(-1);
  return { state, last: last === undefined ? null : { ...last, isRepeated: false } };
}

const STEP_POLL_MS = 200;

const waitOf = ({ run, reader, watch, clock, settings: { waitMs }, onRequest }: LoopContext) => ({
  find: (payload: Uint8Array) => reader.findRequest(run.run_id, payload),
  watch,
  clock,
  waitMs,
  onRequest,
});

/** An approval that has not helped a repeated proposal, e.g. of an approver who was suspended, is not tried again. */
async function settle(loop: LoopContext, last: LastExchange): Promise<RequestWaitResult> {
  const result = await awaitRequest(waitOf(loop), last);
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
    const options = { ...(tokens === null ? {} : { tokens }), ...(prompt === null ? {} : { prompt }) };
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
