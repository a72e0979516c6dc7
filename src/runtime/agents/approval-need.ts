// Whether policy asks for an approval of a proposal that was not made yet.

import type { JsonObject } from '../../core/contract/json.js';
import type { Label } from '../../core/contract/policy/labels.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import { conditionVerdict, approvalRuleFor } from '../../core/policy/policy-features.js';
import type { Policy } from '../../core/policy/policy.js';
import { approvalSubject } from '../../core/step/authorization.js';
import { mediatedContext } from '../../core/step/mediated-request.js';

/** A proposal of an agent run. */
export interface ExpectedProposal {
  readonly agent: RunContext;
  readonly action: string;
  /** With canonical paths. */
  readonly args: JsonObject;
  /** What the run has read so far. */
  readonly label: Label;
  readonly at: string;
}

/**
 * By the approval rules and conditions alone: the proposal can still be denied. Files are taken to be unknown, and
 * counters to have counted nothing.
 */
export function needsApproval({ agent, action, args, label, at }: ExpectedProposal, policy: Policy): boolean {
  const step = { agent, action, args, mediated_run_id: `${agent.run_id}.0` };
  if (approvalRuleFor(policy.approvals, approvalSubject(step, policy)) !== undefined) return true;
  const definition = policy.catalogue.action(action);
  if (definition === undefined) return false;
  const run = mediatedContext(step, policy);
  const counters = (policy.counters?.all ?? []).map(({ name }) => ({ name, used: 0 }));
  return conditionVerdict({ definition, args, run, label, files: [], counters, at }, policy).kind === 'approval';
}
