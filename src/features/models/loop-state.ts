// What a loop remembers between turns. It can be made again from the ledger.

import { parseOwnJson } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { AgentExchange, RequestOutcome } from '../../engine/ports/agent-exchange.js';
import { appendExchange } from './conversation.js';
import type { LoopCounts } from '../../runtime/agents/agent-loop.js';
import { countResponse, finalResponseOf, INITIAL_COUNTS } from './loop-limits.js';

/** A proposal and its response. */
export interface RecordedExchange {
  readonly raw: string | Uint8Array;
  /** As JSON. */
  readonly response: string;
  readonly tokens: number | null;
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
