// The conditions of a policy, as the rest of the platform asks them. The feature `conditions` reads and evaluates them;
// it is installed before the first policy with conditions is loaded.

import type { Catalogue, ActionDefinition } from '../contract/policy/catalogue.js';
import type { JsonObject } from '../contract/json.js';
import type { Label } from '../contract/policy/labels.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { Group, Role } from '../contract/policy/roles.js';
import type { OptionalFiles } from '../contract/policy/pins.js';
import type { CounterFact, CounterQuery } from '../contract/run/counter-fact.js';
import type { PathFact } from '../contract/run/effect.js';
import type { ConcernedCase } from '../contract/run/operator-act.js';
import type { RunContext } from '../contract/run/run-context.js';
import { PolicyError } from '../errors.js';
import type { PolicyFinding } from './files/policy-finding.js';
import type { NamedPolicyFile } from './files/read-policy-file.js';

/** The conditions of one policy. */
export interface Conditions {
  readonly all: readonly Condition[];
  /** The names of actors and persons that they compare, and the persons of groups. */
  readonly names: readonly string[];
  /** Whether the scope of a condition includes the action. */
  canApply(action: string): boolean;
  /**
   * The counters that a step depends on, or that count it.
   * @param agent the run whose step it is
   */
  counterQueries(step: ConditionedStep, agent: RunContext, policy: ConditionedPolicy): readonly CounterQuery[];
  ofStep(request: ConditionedRequest, policy: ConditionedPolicy): ConditionVerdict;
  /** An act that concerns several cases is decided for each. */
  ofRun(run: ConditionedRun, policy: ConditionedPolicy): ConditionVerdict;
  /** The conditions without one of them. */
  without(id: string, policy: ConditionedPolicy): Conditions;
  /** The conditions with another obligation of one of them; null: it denies. */
  withObligation(id: string, obligation: Obligation | null, policy: ConditionedPolicy): Conditions;
}

/** What of a policy conditions depend on. */
export interface ConditionedPolicy {
  /** Everything that the policy can allow: the built-in actions, and the registrations of the tree. */
  readonly catalogue: Catalogue;
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly roles: ReadonlyMap<string, Role>;
  /** Absent: the policy has none. */
  readonly conditions?: Conditions;
  /** Absent: the policy has none. Only conditions read them. */
  readonly counters?: Counters;
  /** The groups of persons that conditions name. Absent: none. */
  readonly groups?: readonly Group[];
}

/** One condition. */
export interface Condition {
  /** Its `@id`: the rule id of what it decides. */
  readonly id: string;
  /** Its `@message`, for people; null without one. */
  readonly message: string | null;
  /** Null: what satisfies it is denied. */
  readonly obligation: Obligation | null;
  /** As the file has it, with its annotations. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
  /** What must be true, as the JSON form of its language says it. */
  readonly scope: ConditionScope;
}

/** The clauses of a condition. */
export interface ConditionScope {
  readonly conditions: readonly { readonly kind: string; readonly body: unknown }[];
}

/** What a condition asks of people instead of denying. */
export interface Obligation {
  /** The number of distinct people. */
  readonly quorum: number;
  /** Null: every role of people. */
  readonly approver_roles: readonly string[] | null;
  readonly expires_minutes: number;
}

/** The strictest of several obligations. */
export interface CombinedObligation {
  readonly quorum: number;
  readonly approver_roles: readonly string[];
  readonly expires_minutes: number;
}

/** A step by its action, with the tool or table. */
export interface ConditionedStep {
  readonly name: string;
  readonly args: JsonObject;
}

/** What a step asks for, as AUTHORIZE has checked it so far. */
export interface ConditionedRequest {
  readonly definition: ActionDefinition;
  /** With canonical paths. */
  readonly args: JsonObject;
  /** The mediated run. */
  readonly run: RunContext;
  readonly label: Label;
  /** The files at the paths, in their order; empty if no facts were gathered. */
  readonly files: readonly PathFact[];
  /** Empty if no facts were gathered. */
  readonly counters: readonly Pick<CounterFact, 'name' | 'used'>[];
  /** When the proposal was received. */
  readonly at: string;
}

/** A run that a person starts, and whose arguments no condition can read: a promotion, an export, an operator's act. */
export interface ConditionedRun {
  /** What conditions call it. */
  readonly action: string;
  readonly run: RunContext;
  readonly label: Label;
  /** The table that a promotion writes; null for the others. */
  readonly table: string | null;
  /** The cases that an operator's act concerns; empty for the others, which have the case of their run. */
  readonly cases: readonly ConcernedCase[];
  readonly at: string;
}

/** What the conditions of an action say of a request. */
export type ConditionVerdict =
  | { readonly kind: 'none' }
  /** `condition.error` with the errors, `condition.no_approver`, or the id of the condition that denies. */
  | { readonly kind: 'deny'; readonly rule_id: string; readonly errors?: readonly ConditionError[] }
  /** `ids`: the conditions that ask for it, in the order of the file. */
  | { readonly kind: 'approval'; readonly ids: readonly string[]; readonly obligation: CombinedObligation };

/** Why a condition could not be evaluated. */
export interface ConditionError {
  readonly condition: string;
  /** Such as `context.counters.refunds_today`; null if the engine names none. */
  readonly attribute: string | null;
  readonly cause: string;
}

/** One line for each condition. */
export const conditionErrorText = ({ condition, attribute, cause }: ConditionError): string =>
  `${condition} could not be evaluated: ${attribute === null ? '' : `${attribute}: `}${cause}`;

const NONE: ConditionVerdict = { kind: 'none' };

/** What the conditions say of a step; nothing for a policy without them. */
export const conditionVerdict = (request: ConditionedRequest, policy: ConditionedPolicy): ConditionVerdict =>
  policy.conditions?.ofStep(request, policy) ?? NONE;

/** What the conditions say of a run that a person starts; nothing for a policy without them. */
export const runConditionVerdict = (run: ConditionedRun, policy: ConditionedPolicy): ConditionVerdict =>
  policy.conditions?.ofRun(run, policy) ?? NONE;

/** The counters of one policy. What they count is known to the feature alone. */
export interface Counters {
  readonly all: readonly { readonly name: string }[];
}

/** Whether decisions under the policy need facts of the ledger besides those of their own tree. */
export const needsLedgerFacts = ({ counters }: ConditionedPolicy): boolean => counters !== undefined;

/** The counters that a step depends on, or that count it; none for a policy without them. */
export const counterQueries = (
  step: ConditionedStep,
  agent: RunContext,
  policy: ConditionedPolicy,
): readonly CounterQuery[] =>
  needsLedgerFacts(policy) ? (policy.conditions?.counterQueries(step, agent, policy) ?? NO_QUERIES) : NO_QUERIES;

const NO_QUERIES: readonly CounterQuery[] = [];

/** What the optional files of a policy say, and what is wrong with them. With a finding nothing of it may be used. */
export interface LoadedConditions {
  readonly conditions?: Conditions;
  readonly counters?: Counters;
  readonly findings: readonly PolicyFinding[];
}

/** The language that conditions are written in. */
export interface ConditionLanguage {
  /** Takes any bytes: every mistake is a finding. */
  load(files: OptionalFiles<NamedPolicyFile>, policy: ConditionedPolicy): LoadedConditions;
  /** The engine that decides, as a tree pins it. @throws PolicyError POLICY_UNSUPPORTED if it cannot be loaded */
  engineVersion(): EngineVersion;
}

/** Of another version of the language no decision is taken. */
export interface EngineVersion {
  readonly language: string;
  readonly engine: string;
}

let installed: ConditionLanguage | null = null;

export const installConditionLanguage = (language: ConditionLanguage): void => {
  installed = language;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function conditionLanguage(): ConditionLanguage {
  if (installed !== null) return installed;
  const message = 'the policy has conditions or counters, and this installation does not have the feature conditions';
  throw new PolicyError({ code: 'POLICY_UNSUPPORTED', message });
}

/** The name of the feature. */
export const CONDITIONS = 'conditions';
