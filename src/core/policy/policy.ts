import type { ActionsPolicy } from '../contract/policy/actions-policy.js';
import type { PolicyFile } from '../contract/policy/pins.js';
import type { ApprovalRule } from '../contract/run/approval.js';
import type { BudgetLimits } from '../contract/run/budget.js';
import type { ConditionedPolicy, DecisionPointPolicy } from './policy-features.js';

/** The pinned policy of one tree, parsed and indexed. Pure data: every decision is a function of it. */
export interface Policy extends ConditionedPolicy, DecisionPointPolicy {
  readonly actions: ReadonlyMap<string, ActionsPolicy['actions'][number]>;
  readonly limits: ActionsPolicy['limits'];
  readonly sandbox: ActionsPolicy['sandbox'];
  readonly exposure: ActionsPolicy['response']['exposure'];
  readonly budgets: BudgetLimits;
  readonly approvals: readonly ApprovalRule[];
  readonly retries: NonNullable<ActionsPolicy['retries']>;
  readonly knobs: ActionsPolicy['knobs'];
  /** What is removed from the events of coding agents. Absent: `DEFAULT_SECRETS`. */
  readonly secrets?: ActionsPolicy['secrets'];
  /** The bytes of its YAML files, to find the lines of what they say. */
  readonly files: Readonly<Record<PolicyFile, Uint8Array>>;
  /** The numbers of the behaviour flags that the tree was opened with (machines/flags.ts). */
  readonly flags: ReadonlySet<number>;
}
