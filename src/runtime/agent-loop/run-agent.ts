// The bounded loop: ask an agent, hand what it says to its run as it is, hand the response back. Nothing that the agent
// says decides how the loop goes on; responses and limits do (`next-turn.ts`).

import { nanoidIds } from '../../adapters/nanoid-ids.js';
import { systemClock } from '../../adapters/system-clock.js';
import { sha256 } from '../../contract/hash.js';
import type { StepResponse } from '../../contract/response.js';
import { RunError, UsageError } from '../../errors.js';
import type { Agent, AgentExchange, AgentProposal, AgentSchemas, AgentTurn } from '../../ports/agent.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { AgentRun, RunEnding } from '../agent-run.js';
import { defer } from '../deferred.js';
import { PROMPT_BYTES_MAX } from '../notes.js';
import { checkTokens } from '../open-request.js';
import { payloadBytes } from '../payload-bytes.js';
import { remember } from './conversation.js';
import { instructionsFor } from './instructions.js';
import { counted, lastWordOf, nextTurn, NOTHING_COUNTED, type LimitReason, type LoopCounts } from './next-turn.js';
import { settingsOf, type RunAgentOptions, type Settings } from './options.js';
import { watchOver, type Watch } from './watch.js';

export type { RunAgentOptions } from './options.js';

/** Why a loop stopped. */
export type StopReason =
  | 'finished' // the agent proposed FINISH, and that succeeded
  | 'run_ended' // the run ended otherwise: denied, cancelled by somebody else, failed
  | LimitReason
  | 'turn_timeout' // the agent did not answer in time
  | 'agent_failed' // the agent threw, or handed over what cannot be proposed at all
  | 'aborted'; // the caller's signal

/** What became of a loop. */
export interface AgentLoopReport {
  readonly reason: StopReason;
  /** The last word of the agent's FINISH; null where it did not come to that. */
  readonly answer: string | null;
  /** How many proposals were answered, denied and invalid, and what they cost; of `unreported` ones nobody knows. */
  readonly counts: LoopCounts;
  /** How the run ended; null where it was left as it is. */
  readonly ending: RunEnding | null;
  /** Of `agent_failed` what the agent threw, else null. It may hold what the agent was told. */
  readonly error: unknown;
}

/**
 * Lets an agent work in its run until it finishes or is stopped. Then the run has ended as well: one that was stopped
 * is cancelled with the reason, unless `whenStopped` says otherwise. Whatever an agent does is a report, not an error.
 * @throws UsageError for options out of range; RunError CLOSED, AGENT_BUSY; LedgerError
 */
export async function runAgent(
  agent: Agent,
  run: AgentRun,
  options: RunAgentOptions & { readonly schemas: AgentSchemas },
): Promise<AgentLoopReport> {
  const { schemas, clock = systemClock(), ids = nanoidIds() } = options;
  const settings = settingsOf(options);
  const watch = watchOver(run, options.signal);
  try {
    const { reason, answer, counts, error } = await turns({ agent, run, schemas, settings, watch, clock, ids });
    return { reason, answer, counts, ending: await endingOf(run, reason, settings), error };
  } finally {
    watch.close();
  }
}

interface Loop {
  readonly agent: Agent;
  readonly run: AgentRun;
  readonly schemas: AgentSchemas;
  readonly settings: Settings;
  readonly watch: Watch;
  readonly clock: Clock;
  readonly ids: Ids;
}

type Stopped = Omit<AgentLoopReport, 'ending'>;

async function turns(loop: Loop): Promise<Stopped> {
  const { schemas, settings, watch } = loop;
  const told = { instructions: instructionsFor(schemas, settings), schemas, task: settings.task };
  let counts = NOTHING_COUNTED;
  let conversation: readonly AgentExchange[] = [];
  let last_response: StepResponse | null = null;
  for (;;) {
    const next = watch.stopped ?? nextTurn(counts, settings);
    if (next !== 'ask') return { reason: next, answer: null, counts, error: null };
    const asked = await ask(loop, { ...told, conversation, last_response, fresh_id: freshId(loop.ids) });
    if ('reason' in asked) return { ...asked, answer: null, counts };
    const prompt = counts.steps === 0 ? promptOf(told) : null;
    const answered = await propose(loop, asked, prompt);
    if ('reason' in answered) return { ...answered, answer: null, counts };
    last_response = JSON.parse(answered.response) as StepResponse;
    counts = counted(counts, last_response, asked.tokens);
    const answer = lastWordOf(last_response);
    if (answer !== null) return { reason: 'finished', answer, counts, error: null };
    conversation = remember(conversation, asked.raw, answered.response, settings.conversationBytes);
  }
}

type Interrupted = Pick<Stopped, 'reason' | 'error'>;

/** What the agent proposes, unless something else happens first. An agent that does not let go is left behind. */
async function ask({ agent, settings, watch, clock }: Loop, turn: AgentTurn): Promise<AgentProposal | Interrupted> {
  const controller = new AbortController();
  const late = defer<'turn_timeout'>();
  const off = clock.wake(clock.now() + settings.turnMs, () => late.resolve('turn_timeout'));
  const asked = Promise.resolve()
    .then(() => agent.propose(turn, controller.signal))
    .then(checkedProposal)
    .catch((error: unknown): Interrupted => ({ reason: 'agent_failed', error }));
  try {
    const first = await watch.during(Promise.race([asked, late.promise]), ['run_ended', 'aborted']);
    return typeof first === 'string' ? { reason: first, error: null } : first;
  } finally {
    off();
    controller.abort();
  }
}

/** What agents hand over is judged by the pipeline; only what no payload can be is caught here. @throws UsageError */
function checkedProposal({ raw, tokens }: AgentProposal): AgentProposal {
  // Agents without types hand over anything.
  if (typeof raw !== 'string' && !((raw as unknown) instanceof Uint8Array)) {
    throw new UsageError({ code: 'USAGE', message: 'an agent proposes text or bytes' });
  }
  // Left out is as good as null: an agent that does not count must not pass for one that costs nothing.
  const reported = (tokens as number | null | undefined) ?? null;
  checkTokens(reported ?? undefined);
  return { raw: payloadBytes(raw), tokens: reported };
}

/** The first prompt of the agent; a longer text is not recorded unless its caller names it. */
function promptOf({ instructions, task }: Pick<AgentTurn, 'instructions' | 'task'>): string | null {
  const text = task === null ? instructions : `${instructions}\n\n${task}`;
  return Buffer.byteLength(text) <= PROMPT_BYTES_MAX ? text : null;
}

async function propose(
  { run, watch }: Loop,
  { raw, tokens }: AgentProposal,
  prompt: string | null,
): Promise<{ readonly response: string } | Interrupted> {
  try {
    // The end of the run is not waited for here: a FINISH ends it, and its response must not get lost.
    const options = { ...(tokens === null ? {} : { tokens }), ...(prompt === null ? {} : { prompt }) };
    const answered = run.respond(raw, options).then((response) => ({ response }));
    const first = await watch.during(answered, ['aborted']);
    return typeof first === 'string' ? { reason: first, error: null } : first;
  } catch (error) {
    if (error instanceof RunError && error.code === 'RUN_ENDED') return { reason: 'run_ended', error: null };
    throw error;
  }
}

async function endingOf(run: AgentRun, reason: StopReason, { whenStopped }: Settings): Promise<RunEnding | null> {
  if (reason === 'finished' || reason === 'run_ended') return run.finished;
  if (whenStopped === 'leave') return null;
  try {
    return await run.cancel(reason);
  } catch (error) {
    // It has ended by itself meanwhile.
    if (error instanceof RunError && ENDED.includes(error.code)) return run.finished;
    throw error;
  }
}

const ENDED: readonly RunError['code'][] = ['INVALID_STATE_TRANSITION', 'RUN_ENDED'];

/** A UUID of version 8 (RFC 9562) made of a drawn id. */
function freshId(ids: Ids): string {
  const hex = sha256(ids.draw('inp_'));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
