// The bounded loop: ask an agent, submit its proposal to its run unchanged, and pass the response back. Nothing that an
// agent writes controls the loop; responses and limits do (`loop-limits.ts`).

import { nanoidIds } from '../../adapters/system/nanoid-ids.js';
import { systemClock } from '../../adapters/system/system-clock.js';
import { sha256 } from '../../contract/hash.js';
import type { StepResponse } from '../../contract/run/response.js';
import { RunError, usageError } from '../../errors.js';
import type { Agent, AgentExchange, AgentProposal, AgentSchemas, AgentTurn } from '../../ports/agent.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { AgentRun, RunEnding } from '../agents/agent-run.js';
import { createDeferred } from '../deferred.js';
import { PROMPT_BYTES_MAX } from '../agents/notes.js';
import { checkTokens } from '../agents/open-input.js';
import { payloadBytes } from '../agents/payload-bytes.js';
import { appendExchange } from './conversation.js';
import { instructionsFor } from './instructions.js';
import {
  countResponse,
  finalResponseOf,
  decideNextTurn,
  INITIAL_COUNTS,
  type LimitReason,
  type LoopCounts,
} from './loop-limits.js';
import { resolveLoopSettings, type RunAgentOptions, type LoopSettings } from './run-agent-options.js';
import { watchRun, type RunWatch } from './run-watch.js';

export type { RunAgentOptions } from './run-agent-options.js';

/** Why a loop stopped. */
export type StopReason =
  | 'finished' // the agent proposed FINISH, and that succeeded
  | 'run_ended' // the run ended otherwise: denied, cancelled by another caller, failed
  | LimitReason
  | 'turn_timeout' // the agent did not answer in time
  | 'agent_failed' // the agent threw, or returned a value that cannot be a proposal
  | 'aborted'; // the caller's signal

/** The result of a loop. */
export interface AgentLoopReport {
  readonly reason: StopReason;
  /** The final answer in the agent's FINISH; null if it did not finish. */
  readonly answer: string | null;
  /** How many proposals were answered, denied and invalid, and their cost; the cost of `unreported` ones is unknown. */
  readonly counts: LoopCounts;
  /** How the run ended; null if it was left running. */
  readonly ending: RunEnding | null;
  /** For `agent_failed`, the error that the agent threw; else null. It may contain the agent's input. */
  readonly error: unknown;
}

/**
 * Runs an agent until it finishes or is stopped. The run has then ended too: a stopped one is cancelled with the
 * reason, unless `whenStopped` says otherwise. Failures of the agent are reported, not thrown.
 * @throws UsageError for options out of range; RunError CLOSED, AGENT_BUSY; LedgerError
 */
export async function runAgent(
  agent: Agent,
  run: AgentRun,
  options: RunAgentOptions & { readonly schemas: AgentSchemas },
): Promise<AgentLoopReport> {
  const { schemas, clock = systemClock(), ids = nanoidIds() } = options;
  const settings = resolveLoopSettings(options);
  const watch = watchRun(run, options.signal);
  try {
    const { reason, answer, counts, error } = await runTurns({ agent, run, schemas, settings, watch, clock, ids });
    return { reason, answer, counts, ending: await endRun(run, reason, settings), error };
  } finally {
    watch.close();
  }
}

interface LoopContext {
  readonly agent: Agent;
  readonly run: AgentRun;
  readonly schemas: AgentSchemas;
  readonly settings: LoopSettings;
  readonly watch: RunWatch;
  readonly clock: Clock;
  readonly ids: Ids;
}

type LoopStop = Omit<AgentLoopReport, 'ending'>;

async function runTurns(loop: LoopContext): Promise<LoopStop> {
  const { schemas, settings, watch } = loop;
  const turnBase = { instructions: instructionsFor(schemas, settings), schemas, task: settings.task };
  let counts = INITIAL_COUNTS;
  let conversation: readonly AgentExchange[] = [];
  let last_response: StepResponse | null = null;
  for (;;) {
    const next = watch.interruption ?? decideNextTurn(counts, settings);
    if (next !== 'ask') return { reason: next, answer: null, counts, error: null };
    const proposal = await requestProposal(loop, {
      ...turnBase,
      conversation,
      last_response,
      fresh_id: drawProposalId(loop.ids),
    });
    if ('reason' in proposal) return { ...proposal, answer: null, counts };
    const prompt = counts.steps === 0 ? promptOf(turnBase) : null;
    const outcome = await propose(loop, proposal, prompt);
    if ('reason' in outcome) return { ...outcome, answer: null, counts };
    last_response = JSON.parse(outcome.response) as StepResponse;
    counts = countResponse(counts, last_response, proposal.tokens);
    const answer = finalResponseOf(last_response);
    if (answer !== null) return { reason: 'finished', answer, counts, error: null };
    conversation = appendExchange(conversation, proposal.raw, outcome.response, settings.conversationBytes);
  }
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
  if (whenStopped === 'leave') return null;
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
