// When a loop goes on and when it stops: a reducer over what was answered. It never looks at what the agent said.

import type { Outcome } from '../../contract/run/phase.js';
import type { StepResponse } from '../../contract/run/response.js';

/** How far a loop may go. Whole numbers. */
export interface LoopLimits {
  /** Proposals. */
  readonly maxSteps: number;
  /** Denied proposals, all together. */
  readonly maxDenials: number;
  /** Invalid proposals, one after another. */
  readonly maxInvalid: number;
  /** Tokens as the agent reports them; null for no limit of the loop's own. */
  readonly maxTokens: number | null;
}

/** What a loop has come to. */
export interface LoopCounts {
  readonly steps: number;
  readonly denials: number;
  readonly invalid: number;
  readonly invalid_in_a_row: number;
  readonly tokens: number;
  /** Proposals of which nobody knows what they cost. */
  readonly unreported: number;
}

export const INITIAL_COUNTS: LoopCounts = {
  steps: 0,
  denials: 0,
  invalid: 0,
  invalid_in_a_row: 0,
  tokens: 0,
  unreported: 0,
};

export type LimitReason = 'max_steps' | 'max_denials' | 'max_invalid' | 'max_tokens' | 'tokens_unreported';

/** May the agent be asked once more? Several limits reached at once: the first in this order is named. */
export function decideNextTurn(counts: LoopCounts, limits: LoopLimits): 'ask' | LimitReason {
  if (counts.denials >= limits.maxDenials) return 'max_denials';
  if (counts.invalid_in_a_row >= limits.maxInvalid) return 'max_invalid';
  if (limits.maxTokens !== null && counts.tokens >= limits.maxTokens) return 'max_tokens';
  // A limit that nobody can hold is no limit: whoever sets one needs an agent that counts.
  if (limits.maxTokens !== null && counts.unreported > 0) return 'tokens_unreported';
  return counts.steps >= limits.maxSteps ? 'max_steps' : 'ask';
}

/** The counts after one more response, whose proposal has cost so many tokens. */
export function countResponse(counts: LoopCounts, response: StepResponse, tokens: number | null): LoopCounts {
  const { denied, invalid } = classifyResponse(response);
  return {
    steps: counts.steps + 1,
    denials: counts.denials + (denied ? 1 : 0),
    invalid: counts.invalid + (invalid ? 1 : 0),
    invalid_in_a_row: invalid ? counts.invalid_in_a_row + 1 : 0,
    tokens: Math.min(Number.MAX_SAFE_INTEGER, counts.tokens + (tokens ?? 0)),
    unreported: counts.unreported + (tokens === null ? 1 : 0),
  };
}

/** The last word of a FINISH that succeeded, or null: then the run goes on. */
export function finalResponseOf({ action, result }: StepResponse): string | null {
  if (action !== 'FINISH' || result === null) return null;
  const { response } = result as { readonly response?: unknown };
  return typeof response === 'string' ? response : '';
}

/** Where only the decision is shown (S2-12), nobody outside the audit can tell the two apart: it counts as both. */
function classifyResponse(response: StepResponse): { readonly denied: boolean; readonly invalid: boolean } {
  if ('decision' in response) return { denied: response.decision === 'DENY', invalid: response.decision === 'DENY' };
  const outcome: Outcome = response.outcome;
  return { denied: outcome === 'DENIED', invalid: outcome === 'VALIDATION_ERROR' };
}
