import type { ActionsPolicy } from '../contract/policy/actions-policy.js';
import type { PolicyFile } from '../contract/policy/pins.js';
import type { ApprovalRule } from '../contract/run/approval.js';
import type { BudgetLimits } from '../contract/run/budget.js';
import type { DecisionPoint } from '../contract/policy/decision-points.js';
import type { Catalogue } from '../contract/policy/catalogue.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { Conditions } from './conditions/conditions.js';
import type { Counters } from './counters/load-counters.js';
import type { Group, Role } from '../contract/policy/roles.js';

/** The pinned policy of one tree, parsed and indexed. Pure data: every decision is a function of it. */
export interface Policy {
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly roles: ReadonlyMap<string, Role>;
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
  /** Decision points that are asked before an action is allowed. Absent: none. */
  readonly decision_points?: readonly DecisionPoint[];
  /** The bytes of its YAML files, to find the lines of what they say. */
  readonly files: Readonly<Record<PolicyFile, Uint8Array>>;
  /** Everything that a policy can allow: the built-in actions, and the registrations of the tree. */
  readonly catalogue: Catalogue;
  /** Absent: the policy has no conditions. */
  readonly conditions?: Conditions;
  /** Absent: the policy has no counters. Only conditions read them. */
  readonly counters?: Counters;
  /** The groups of persons that conditions name. Absent: none. */
  readonly groups?: readonly Group[];
  /** The numbers of the behaviour flags that the tree was opened with (machines/flags.ts). */
  readonly flags: ReadonlySet<number>;
}
