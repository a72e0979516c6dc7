// The call rules of a lane, as the rest of the platform uses them. The feature `hooks` decides calls by them; it is
// installed before the first policy with call rules is loaded.

import { approvalSubjectOf, type CallRule } from '../contract/policy/call-rules.js';
import type { JsonObject } from '../contract/json.js';
import type { Lane } from '../contract/policy/lanes.js';
import { PolicyError } from '../errors.js';

/** A call as call rules see it. */
export interface JudgedCall {
  readonly tool: string;
  readonly input: JsonObject;
}

/** The call rules of a lane. */
export type CallRules = Pick<Lane, 'calls'>;

/** What the call rules of a lane decide about a call. `rule` is null if no rule has matched. */
export type CallRuleVerdict =
  | { readonly decision: 'allow' }
  | { readonly decision: 'approval'; readonly rule: CallRule }
  | { readonly decision: 'deny'; readonly rule: CallRule | null }
  /** The input cannot be read with certainty. */
  | { readonly decision: 'unreadable' };

/** What decides calls by call rules. */
export interface CallDecider {
  decide(rules: CallRules, call: JudgedCall): CallRuleVerdict;
  /** The rules that grant the parts of a call, each once. */
  grantingRules(rules: CallRules, call: JudgedCall): readonly CallRule[];
}

let installed: CallDecider | null = null;

export const installCallDecider = (decider: CallDecider): void => {
  installed = decider;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function callDecider(): CallDecider {
  if (installed !== null) return installed;
  const message = 'the policy has call rules, and this installation does not have the feature hooks';
  throw new PolicyError({ code: 'POLICY_UNSUPPORTED', message });
}

/** Decides a call by the call rules of a lane: a lane without them allows it. */
export const callRuleVerdict = (rules: CallRules, call: JudgedCall): CallRuleVerdict =>
  rules.calls === undefined ? ALLOWED : callDecider().decide(rules, call);

const ALLOWED: CallRuleVerdict = { decision: 'allow' };

/** The rules of a lane that grant the parts of a call, each once. */
export const grantingCallRules = (rules: CallRules, call: JudgedCall): readonly CallRule[] =>
  rules.calls === undefined ? [] : callDecider().grantingRules(rules, call);

/** The subject of the approval that a call needs by these rules; null if it needs none. */
export function callApprovalSubject(rules: CallRules, call: JudgedCall): string | null {
  const verdict = callRuleVerdict(rules, call);
  return verdict.decision === 'approval' ? approvalSubjectOf(verdict.rule) : null;
}

/** The name of the feature. */
export const HOOKS = 'hooks';
