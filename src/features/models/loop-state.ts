// What a loop remembers between turns, its settings, and whether it continues: a reducer over responses, which never
// reads what the agent wrote.

import { parseOwnJson } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { AgentExchange, RequestOutcome } from '../../engine/ports/agent-exchange.js';
import type { LoopCounts, LimitReason, RunAgentOptions } from '../../runtime/agents/agent-loop.js';
import type { Outcome } from '../../core/contract/run/phase.js';
import { usageError } from '../../core/errors.js';

/** Limits of a loop. Whole numbers. */
export interface LoopLimits {
  /** Limit of proposals. */
  readonly maxSteps: number;
  /** Limit of denied proposals in total. */
  readonly maxDenials: number;
  /** Limit of consecutive invalid proposals. */
  readonly maxInvalid: number;
  /** Limit of tokens as the agent reports them; null for no limit of the loop itself. */
  readonly maxTokens: number | null;
}

export const INITIAL_COUNTS: LoopCounts = {
  steps: 0,
  denials: 0,
  invalid: 0,
  invalid_in_a_row: 0,
  tokens: 0,
  unreported: 0,
};

/** Whether the agent gets another turn. If several limits are reached, the first in this order is reported. */
export function decideNextTurn(counts: LoopCounts, limits: LoopLimits): 'ask' | LimitReason {
  if (counts.denials >= limits.maxDenials) return 'max_denials';
  if (counts.invalid_in_a_row >= limits.maxInvalid) return 'max_invalid';
  if (limits.maxTokens !== null && counts.tokens >= limits.maxTokens) return 'max_tokens';
  // A token limit cannot be enforced without reports: a caller who sets one needs an agent that counts tokens.
  if (limits.maxTokens !== null && counts.unreported > 0) return 'tokens_unreported';
  return counts.steps >= limits.maxSteps ? 'max_steps' : 'ask';
}

/**
 * The counts after one more response, whose proposal cost `tokens`.
 * @param request what became of the request that the proposal made: an approved one does not count as denied
 */
export function countResponse(
  counts: LoopCounts,
  response: StepResponse,
  tokens: number | null,
  request: RequestOutcome | null = null,
): LoopCounts {
  const { denied, invalid } = request === 'approved' ? ACCEPTED : classifyResponse(response, request);
  return {
    steps: counts.steps + 1,
    denials: counts.denials + (denied ? 1 : 0),
    invalid: counts.invalid + (invalid ? 1 : 0),
    invalid_in_a_row: invalid ? counts.invalid_in_a_row + 1 : 0,
    tokens: Math.min(Number.MAX_SAFE_INTEGER, counts.tokens + (tokens ?? 0)),
    unreported: counts.unreported + (tokens === null ? 1 : 0),
  };
}

/** The final response of a successful FINISH; null if the run continues. */
export function finalResponseOf({ action, result }: StepResponse): string | null {
  if (action !== 'FINISH' || result === null) return null;
  const { response } = result as { readonly response?: unknown };
  return typeof response === 'string' ? response : '';
}

interface ResponseClass {
  readonly denied: boolean;
  readonly invalid: boolean;
}
const ACCEPTED: ResponseClass = { denied: false, invalid: false };

/** If the policy shows only the decision (S2-12), denial and rejection look the same: the response counts as both. */
function classifyResponse(response: StepResponse, request: RequestOutcome | null): ResponseClass {
  if ('decision' in response) {
    const denied = response.decision === 'DENY';
    // A request for approval was certainly no invalid proposal.
    return { denied, invalid: denied && request === null };
  }
  const outcome: Outcome = response.outcome;
  return { denied: outcome === 'DENIED', invalid: outcome === 'VALIDATION_ERROR' };
}

export interface LoopSettings extends LoopLimits {
  readonly task: string | null;
  readonly turnMs: number;
  readonly conversationBytes: number;
  /** Null for no limit. */
  readonly waitMs: number | null;
  readonly whenStopped: 'cancel' | 'leave';
}

const TASK_BYTES_MAX = 1_048_576;
const STEPS_MAX = 100_000;
const TURN_MS_MAX = 86_400_000;
/** A year, as long as a request may be open. */
const WAIT_MS_MAX = 31_536_000_000;
const CONVERSATION_BYTES_MAX = 16_777_216;

/**
 * The options with their defaults.
 * @throws UsageError for one out of range
 */
export function resolveLoopSettings(options: RunAgentOptions): LoopSettings {
  const { task = null, whenStopped = 'cancel' } = options;
  if (task !== null && (typeof task !== 'string' || Buffer.byteLength(task) > TASK_BYTES_MAX)) {
    throw usageError(`task: a text of at most ${TASK_BYTES_MAX} bytes`);
  }
  // Callers without types may pass any value.
  if (!['cancel', 'leave'].includes(whenStopped)) throw usageError('whenStopped: cancel or leave');
  return {
    task,
    whenStopped,
    maxSteps: validateWholeNumber('maxSteps', options.maxSteps ?? 50, 1, STEPS_MAX),
    maxDenials: validateWholeNumber('maxDenials', options.maxDenials ?? 10, 1, STEPS_MAX),
    maxInvalid: validateWholeNumber('maxInvalid', options.maxInvalid ?? 5, 1, STEPS_MAX),
    maxTokens:
      options.maxTokens === undefined
        ? null
        : validateWholeNumber('maxTokens', options.maxTokens, 1, Number.MAX_SAFE_INTEGER),
    waitMs: options.waitMs === undefined ? null : validateWholeNumber('waitMs', options.waitMs, 0, WAIT_MS_MAX),
    turnMs: validateWholeNumber('turnMs', options.turnMs ?? 300_000, 1, TURN_MS_MAX),
    conversationBytes: validateWholeNumber(
      'conversationBytes',
      options.conversationBytes ?? 524_288,
      CONVERSATION_BYTES_MIN,
      CONVERSATION_BYTES_MAX,
    ),
  };
}

function validateWholeNumber(name: string, value: number, minimum: number, maximum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return value;
  throw usageError(`${name}: a whole number from ${minimum} to ${maximum}`);
}

// The state. It can be made again from the ledger.

/** A proposal and its response. */
export interface RecordedExchange {
  readonly raw: string | Uint8Array;
  /** As JSON. */
  readonly response: string;
  readonly tokens: number | null;
}

/** The proposals of a run and their responses, as the ledger has them: what a loop continues from after a restart. */
export interface RunHistory {
  readonly exchanges: readonly RecordedExchange[];
  /** Whether a proposal of an earlier process has no response yet. */
  readonly isStepping: boolean;
}

export interface LoopState {
  readonly counts: LoopCounts;
  readonly conversation: readonly AgentExchange[];
  readonly last_response: StepResponse | null;
  /** The final answer of a successful FINISH; null before. */
  readonly answer: string | null;
}

export const INITIAL_STATE: LoopState = {
  counts: INITIAL_COUNTS,
  conversation: [],
  last_response: null,
  answer: null,
};

/**
 * The state after one more exchange.
 * @param outcome what became of the request for approval that the proposal made; null if it made none
 */
export function applyExchange(
  { counts, conversation }: LoopState,
  { raw, response, tokens }: RecordedExchange,
  outcome: RequestOutcome | null,
  conversationBytes: number,
): LoopState {
  const last_response = parseOwnJson(response) as StepResponse;
  return {
    counts: countResponse(counts, last_response, tokens, outcome),
    conversation: appendExchange(conversation, { proposal: raw, response, request: outcome }, conversationBytes),
    last_response,
    answer: finalResponseOf(last_response),
  };
}

/** Below this limit, even the notes about truncation would not fit. */
export const CONVERSATION_BYTES_MIN = 4_096;

/** Shares of the limit, in eighths. The first and the last exchange always fit together, so both always stay. */
const PROPOSAL_EIGHTHS = 1;
const RESPONSE_EIGHTHS = 3;

/** Bytes reserved for the note at the end of a truncated text. */
const NOTE_BYTES = 64;

/** One more exchange, before its texts are truncated. */
interface NewExchange {
  readonly proposal: string | Uint8Array;
  readonly response: string;
  readonly request?: RequestOutcome | null;
}

/**
 * The conversation after one more exchange: what is sent to an agent again, within a limit of bytes. The oldest ones
 * are dropped first, except the very first, which contains its plan.
 */
export function appendExchange(
  earlier: readonly AgentExchange[],
  { proposal, response, request = null }: NewExchange,
  bytesMax: number,
): readonly AgentExchange[] {
  const eighth = Math.floor(bytesMax / 8);
  const exchange: AgentExchange = {
    proposal: truncateText(proposal, eighth * PROPOSAL_EIGHTHS),
    response: truncateText(response, eighth * RESPONSE_EIGHTHS),
    left_out: 0,
    ...(request === null ? {} : { request }),
  };
  const exchanges = [...earlier, exchange];
  let size = exchanges.reduce((sum, each) => sum + bytesOf(each), 0);
  let left_out = 0;
  while (size > bytesMax && exchanges.length > 2) {
    for (const dropped of exchanges.splice(1, 1)) {
      size -= bytesOf(dropped);
      left_out += dropped.left_out + 1;
    }
  }
  return left_out === 0 ? exchanges : exchanges.map((each, index) => (index === 1 ? addLeftOut(each, left_out) : each));
}

const addLeftOut = (exchange: AgentExchange, more: number): AgentExchange => ({
  ...exchange,
  left_out: exchange.left_out + more,
});

const bytesOf = ({ proposal, response }: AgentExchange): number =>
  Buffer.byteLength(proposal) + Buffer.byteLength(response);

/** The content as well-formed text of at most `bytesMax` bytes. Longer content is truncated, with a note. */
function truncateText(content: string | Uint8Array, bytesMax: number): string {
  const whole = typeof content === 'string' ? Buffer.byteLength(content) : content.byteLength;
  // A character has at most this number of bytes, so no longer prefix needs to be decoded.
  const prefix =
    typeof content === 'string' ? content.slice(0, bytesMax + 1) : Buffer.from(content.subarray(0, bytesMax + 1));
  // Invalid UTF-8 and unpaired surrogates become U+FFFD.
  const text = Buffer.from(prefix.toString());
  if (whole <= bytesMax && text.byteLength <= bytesMax) return text.toString();
  return `${truncateUtf8(text, bytesMax - NOTE_BYTES)}\n[cut here: this had ${whole} bytes]`;
}

/** At most `bytesMax` bytes of a text, without half a character. */
function truncateUtf8(text: Buffer, bytesMax: number): string {
  let end = Math.min(bytesMax, text.byteLength);
  while (end > 0 && isContinuation(text[end])) end -= 1;
  return text.subarray(0, end).toString();
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
