// Decides whether a loop continues: a reducer over responses. It never reads what the agent wrote.

import type { Outcome } from '../../core/contract/run/phase.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { RequestOutcome } from '../../engine/ports/agent-exchange.js';
import type { LimitReason, LoopCounts } from '../../runtime/agents/agent-loop.js';

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
