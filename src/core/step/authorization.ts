// The AUTHORIZE phase, stage by stage. The step machine, `policy simulate` and `policy explain` use `authorizeStep`, so
// that the order of the stages and of their checks (`STEP_CHECKS`) exists once:
//
//   start:  lane, overlay, case, budget, and whatever needs no facts
//   facts:  paths, quota, unknown outcomes, conditions, decision points, approval
//   ending: the run was cancelled before the facts arrived
//
// The budget is last of the first stage: an agent without budget learns first that a lane denies it. The mediated run
// carries the verdict, so every check uses that run's context (C51).

import type { ActionDefinition } from '../contract/policy/catalogue.js';
import type { Account, BudgetKind } from '../contract/run/budget.js';
import type { ApprovalObligation } from '../contract/run/approval.js';
import {
  type GatheredFacts,
  type GatherRequest,
  REFUSED_KINDS,
  type PathFact,
  type SandboxFacts,
} from '../contract/run/effect.js';
import type { RunContext } from '../contract/run/run-context.js';
import { type CheckedValue, type ExecutionCause, type Fault, passWith, rejectWith } from '../contract/fault.js';
import { type JsonObject, isJsonObject, type Json } from '../contract/json.js';
import { InvariantError } from '../errors.js';
import { lackingKind } from '../run/budget-account.js';
import {
  conditionVerdict,
  counterQueries,
  type ConditionedRequest,
  type ConditionVerdict,
  callApprovalSubject,
  decisionPointDenial,
  decisionQueries,
  decidedActionName,
  approvalDecider,
  approvalRuleFor,
  finishDenial,
  type ApprovalDecision,
} from '../policy/policy-features.js';
import { authorizeWithOverlay, BUDGET_CHECK, findFirstDenial } from '../policy/authorize-run.js';
import {
  deny,
  denyBudget,
  denyCondition,
  type Verdict,
  type CheckDescription,
  type OrderedCheck,
} from '../policy/verdict.js';
import type { PrivilegedRequest } from '../policy/privileged-request.js';
import type { Policy } from '../policy/policy.js';
import { UNDECIDED_AUTHORIZATION, type AuthorizationSubject, type Authorization } from './authorization-subject.js';
import { mediatedContext, requestHash, privilegedRequest } from './mediated-request.js';
import {
  canonicalizePath,
  isExtensionAllowed,
  pathOptionsOf,
  segmentCount,
  type SandboxPath,
} from '../policy/sandbox-path.js';

export type { AuthorizationSubject, Authorization } from './authorization-subject.js';
export { UNDECIDED_AUTHORIZATION } from './authorization-subject.js';

/** What starts a stage. */
type AuthorizationStage =
  | { readonly kind: 'start'; readonly account: Account }
  | { readonly kind: 'facts'; readonly facts: GatheredFacts | null }
  | { readonly kind: 'ending' };

/** Runs one stage. Returns no verdict if facts are needed, or if an action without a run of its own is allowed. */
export function authorizeStep(step: AuthorizationSubject, stage: AuthorizationStage, policy: Policy): Authorization {
  switch (stage.kind) {
    case 'start': {
      const runs = isPrivileged(step, policy) ? 1 : 0;
      return authorizeLane(step, policy, findExhaustedBudget(stage.account, runs));
    }
    case 'facts':
      return authorizeWithFacts(step, stage.facts, policy);
    case 'ending':
      return { ...step.authorization, verdict: RUN_ENDING_DENIAL };
  }
}

/** Whether the action of the step needs a mediated run. */
export const isPrivileged = ({ action }: Pick<AuthorizationSubject, 'action'>, { catalogue }: Policy): boolean =>
  // Stryker disable next-line StringLiteral: neither name is an action
  catalogue.action(action ?? '')?.run_kind !== null;

/** The verdict on a step whose agent run is ending. */
export const RUN_ENDING_DENIAL: Verdict = { decision: 'deny', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' };

/**
 * The first budget kind that is exhausted for a step with `runs` mediated runs, or null. A step needs one step, its
 * runs, and something left of time, bytes and limited tokens.
 */
export function findExhaustedBudget(account: Account, runs: number): BudgetKind | null {
  const needed = { steps: 1, tool_calls: runs, wall_ms: 1, bytes: 1, tokens: 1 };
  return lackingKind(account, needed);
}

/**
 * The first half: role, lane, tool, scope, prohibitions (S4-31 to S4-35). `exhausted` is the first exhausted budget
 * that the step needs. Returns no verdict if facts are needed.
 */
export function authorizeLane(
  step: AuthorizationSubject,
  policy: Policy,
  exhausted: string | null = null,
): Authorization {
  const definition = definitionOf(step, policy);
  const budgetVerdict = exhausted === null ? null : denyBudget(exhausted);
  // An agent without budget may still end its run.
  if (definition.run_kind === null) {
    const denial = definition.name === 'FINISH' ? finishDenial(step, policy) : budgetVerdict;
    return denial === null ? UNDECIDED_AUTHORIZATION : deniedAuthorization(denial);
  }
  const run = mediatedContext(step, policy);
  const args = step.args ?? {};
  const request = privilegedRequest(definition, args, run, policy.catalogue, step.label);
  const authorizationRequest = { action: definition.name, privileged: request, overlay: step.overlay };
  const verdict = authorizeWithOverlay(run, authorizationRequest, policy);
  const denial =
    verdict.decision === 'deny'
      ? verdict
      : findFirstDenial(LANE_STEP_CHECKS, { definition, request, run, budgetVerdict });
  if (denial !== null) return deniedAuthorization(denial);
  // Anything denied by its arguments alone is denied without reading facts.
  return factsRequest(step, policy) === null ? authorizeWithFacts(step, null, policy) : UNDECIDED_AUTHORIZATION;
}

/** What the checks of the first half read. */
interface LaneStep {
  readonly definition: ActionDefinition;
  readonly request: PrivilegedRequest;
  readonly run: RunContext;
  readonly budgetVerdict: Verdict | null;
}

/** The checks of a step after those of its lane, in order. */
const LANE_STEP_CHECKS: readonly OrderedCheck<LaneStep, Verdict>[] = [
  {
    // Sandboxes and record rows belong to a case.
    claim: 'the run has a case where it needs one',
    rules: ['sandbox.no_case', 'records.no_case'],
    findDenial({ definition: { paths, run_kind }, request, run }) {
      if (run.case_id !== null) return null;
      if (paths.length > 0) return { decision: 'deny', rule_id: 'sandbox.no_case', cause: 'SANDBOX' };
      if (run_kind === 'tool_gateway' || request.plane === 'shared') return null;
      return { decision: 'deny', rule_id: 'records.no_case', cause: 'LANE' };
    },
  },
  { ...BUDGET_CHECK, findDenial: ({ budgetVerdict }) => budgetVerdict },
];

/** The facts that the engine must gather. @throws InvariantError if the step needs none */
export function requireGatherRequest(step: AuthorizationSubject, policy: Policy): GatherRequest {
  const request = factsRequest(step, policy);
  if (request === null) throw new InvariantError('there is nothing to gather for this step');
  return request;
}

/** @returns null if the step needs no facts, or is denied by its arguments alone */
function factsRequest(step: AuthorizationSubject, policy: Policy): GatherRequest | null {
  const { case_id } = mediatedContext(step, policy);
  const definition = definitionOf(step, policy);
  const args = step.args ?? {};
  const request = case_id === null ? null : gatherRequestFor(definition, args, case_id, policy);
  if (request === null && definition.paths.length > 0) return null;
  const name = decidedActionName(definition.name, args);
  const counters = counterQueries({ name, args }, step.agent, policy);
  const queried = { name, action: definition.name, args, paths: request?.paths ?? [] };
  const decisions = decisionQueries(queried, mediatedContext(step, policy), policy);
  if (counters.length === 0 && decisions.length === 0) return request;
  return {
    ...(request ?? { case_id, paths: [], usage: false, portable_names: false }),
    ...(counters.length === 0 ? {} : { counters }),
    ...(decisions.length === 0 ? {} : { decisions, mediated_run_id: step.mediated_run_id }),
  };
}

/** The second half: the checks that may need facts, in their order. Denies a path without facts. */
export function authorizeWithFacts(
  step: AuthorizationSubject,
  facts: GatheredFacts | null,
  policy: Policy,
): Authorization {
  const subject = new StepWithFacts(step, facts, policy);
  return findFirstDenial(FACT_CHECKS, subject) ?? subject.allowed;
}

/** A step and its facts. What several checks read is computed once. */
class StepWithFacts {
  readonly step: AuthorizationSubject;
  readonly facts: GatheredFacts | null;
  readonly policy: Policy;
  readonly definition: ActionDefinition;
  readonly paths: CheckedValue<JsonObject>;
  #conditions: ConditionVerdict | null = null;
  #approval: ApprovalDecision | null = null;

  constructor(step: AuthorizationSubject, facts: GatheredFacts | null, policy: Policy) {
    this.step = step;
    this.facts = facts;
    this.policy = policy;
    this.definition = definitionOf(step, policy);
    this.paths = authorizePaths({ definition: this.definition, args: step.args ?? {}, facts, policy });
  }

  /** The arguments with canonical paths, once the checks of paths have passed. */
  get args(): JsonObject {
    return this.paths.ok ? this.paths.value : {};
  }

  get conditions(): ConditionVerdict {
    this.#conditions ??= conditionVerdict(conditionedRequest(this), this.policy);
    return this.#conditions;
  }

  get approval(): ApprovalDecision {
    this.#approval ??= decideApproval(this);
    return this.#approval;
  }

  /** The result after all checks have passed. */
  get allowed(): Authorization {
    const { digest, obligation } = this.approval;
    const before = this.facts?.paths ?? [];
    return { verdict: GRANTED, args: this.args, before, digest, ...withObligation(obligation) };
  }
}

// Path arguments: canonical paths, extensions, existing files, quota. What checks them relies on no check of an earlier
// phase, so that a defect in an earlier phase allows nothing (C21).

/**
 * The facts that `authorizePaths` needs in order to allow.
 * @returns null if the action has no path, or one that its text alone denies (not canonical, or with an extension that
 *   the policy does not allow): the sandbox never sees such a path
 */
export function gatherRequestFor(
  definition: ActionDefinition,
  args: JsonObject,
  case_id: string,
  policy: Policy,
): GatherRequest | null {
  if (definition.paths.length === 0) return null;
  const named = canonicalPaths(definition, args, policy);
  if (!named.ok || checkExtension(definition, named.value, policy) !== null) return null;
  const { portable_names } = policy.sandbox;
  return { case_id, paths: named.value.map(([, path]) => path), usage: canGrow(definition), portable_names };
}

interface PathCheckInput {
  readonly definition: ActionDefinition;
  readonly args: JsonObject;
  /** Its `paths` are in the order of the definition; null if no facts were gathered. */
  readonly facts: SandboxFacts | null;
  readonly policy: Policy;
}

/**
 * Decides whether an action may use the paths in its arguments, by `PATH_CHECKS`. A path at which nothing exists, or a
 * directory, is not denied: EXECUTE reports it (S0-76).
 *
 * @returns the arguments with canonical paths, with which the effect runs, or POLICY_VIOLATION with cause SANDBOX,
 *   EXTENSION or QUOTA (LANE for an action that is not in the allowlist)
 */
export function authorizePaths(input: PathCheckInput): CheckedValue<JsonObject> {
  const { definition, args, policy } = input;
  if (!policy.actions.has(definition.name)) return rejectWith('POLICY_VIOLATION', 'action.not_in_allowlist', 'LANE');
  if (definition.paths.length === 0) return passWith(args);
  const denial = findFirstDenial(PATH_CHECKS, input);
  if (denial !== null) return denial;
  const named = canonicalPaths(definition, args, policy);
  return named.ok ? passWith(withPaths(definition, args, named.value)) : named;
}

/** The checks of path arguments in order, each with its own rule ids. */
export const PATH_CHECKS: readonly OrderedCheck<PathCheckInput, CheckedValue<never>>[] = [
  {
    claim: 'the paths lead into the sandbox',
    rules: ['sandbox.*'],
    findDenial: ({ definition, args, policy }) => {
      const named = canonicalPaths(definition, args, policy);
      return named.ok ? null : named;
    },
  },
  {
    claim: 'the extensions of the paths are allowed',
    rules: ['extension.not_allowed'],
    findDenial: (input) => checkExtension(input.definition, namedPaths(input), input.policy),
  },
  {
    claim: 'nothing at the paths is of a refused kind',
    rules: ['sandbox.no_facts', ...REFUSED_KINDS.map((kind) => `sandbox.${kind}`)],
    findDenial: ({ definition, facts }) => checkFacts(definition, facts),
  },
  {
    claim: 'the sandbox has room for it',
    rules: ['sandbox.depth', 'quota.*'],
    findDenial: (input) => checkQuota(input, namedPaths(input)),
  },
];

/** The name of a path argument and its canonical path. */
type NamedPath = readonly [name: string, path: SandboxPath];
type PathDenial = CheckedValue<never> | null;

type NamedPaths = CheckedValue<readonly NamedPath[]>;
const canonical = new WeakMap<
  JsonObject,
  { readonly definition: ActionDefinition; readonly policy: Policy; readonly paths: NamedPaths }
>();

/** Computed once for the same arguments: the checks before and after the facts need it. */
function canonicalPaths(definition: ActionDefinition, args: JsonObject, policy: Policy): NamedPaths {
  const known = canonical.get(args);
  if (known?.definition === definition && known.policy === policy) return known.paths;
  const paths = findCanonicalPaths(definition, args, policy);
  canonical.set(args, { definition, policy, paths });
  return paths;
}

/** The canonical paths; none if the first check denies them. */
function namedPaths({ definition, args, policy }: PathCheckInput): readonly NamedPath[] {
  const named = canonicalPaths(definition, args, policy);
  return named.ok ? named.value : [];
}

function findCanonicalPaths(definition: ActionDefinition, args: JsonObject, policy: Policy): NamedPaths {
  const options = pathOptionsOf(definition, policy);
  const named: NamedPath[] = [];
  for (const name of definition.paths) {
    const raw = args[name];
    if (typeof raw !== 'string') return rejectWith('POLICY_VIOLATION', 'sandbox.no_path', 'SANDBOX');
    const path = canonicalizePath(raw, options);
    if (!path.ok) return path;
    named.push([name, path.value]);
  }
  return passWith(named);
}

/** The arguments that the action defines, with canonical paths. */
function withPaths(definition: ActionDefinition, args: JsonObject, named: readonly NamedPath[]): JsonObject {
  const canonical: Record<string, Json> = {};
  for (const name of Object.keys(definition.args.properties)) {
    const value = args[name];
    if (value !== undefined) canonical[name] = value;
  }
  for (const [name, path] of named) canonical[name] = path;
  return canonical;
}

function checkExtension(definition: ActionDefinition, named: readonly NamedPath[], policy: Policy): PathDenial {
  const rules = policy.actions.get(definition.name)?.extensions ?? {};
  const refused = named.some(([name, path]) => {
    const endings = rules[name];
    return endings !== undefined && !isExtensionAllowed(path, endings);
  });
  return refused ? rejectWith('POLICY_VIOLATION', 'extension.not_allowed', 'EXTENSION') : null;
}

function checkFacts(definition: ActionDefinition, facts: SandboxFacts | null): PathDenial {
  if (
    facts === null ||
    facts.paths.length !== definition.paths.length ||
    (canGrow(definition) && facts.usage === null)
  ) {
    return rejectWith('POLICY_VIOLATION', 'sandbox.no_facts', 'SANDBOX');
  }
  const fact = facts.paths.find(({ status }) => status === 'refused');
  return fact?.status === 'refused' ? rejectWith('POLICY_VIOLATION', `sandbox.${fact.kind}`, 'SANDBOX') : null;
}

function checkQuota({ definition, args, facts, policy }: PathCheckInput, named: readonly NamedPath[]): PathDenial {
  const { bytes_max, files_max, depth_max } = policy.sandbox;
  if (createdPaths(definition, named).some(([, path]) => segmentCount(path) > depth_max))
    return quotaFault('sandbox.depth');
  const fact = facts?.paths[0];
  const usage = facts?.usage ?? null;
  if (!canGrow(definition) || fact === undefined || usage === null) return null;
  const { content } = args;
  const bytes = typeof content === 'string' ? Buffer.byteLength(content) : 0;
  if (usage.bytes - bytesAt(fact) + bytes > bytes_max) return quotaFault('quota.bytes');
  return usage.files + (isThere(fact) ? 0 : 1) > files_max ? quotaFault('quota.files') : null;
}

const quotaFault = (rule_id: string): CheckedValue<never> => rejectWith('POLICY_VIOLATION', rule_id, 'QUOTA');

/** Whether the sandbox can be larger afterwards: a deletion frees space, and a rename moves a file. */
const canGrow = ({ risk, write }: ActionDefinition): boolean => write !== null && risk === 'write';

/** The paths that can be created: all paths of a write, all but the removed one of a destructive action. */
const createdPaths = (definition: ActionDefinition, named: readonly NamedPath[]): readonly NamedPath[] =>
  definition.write === null ? [] : canGrow(definition) ? named : named.slice(1);

const bytesAt = (fact: PathFact): number => (fact.status === 'file' ? fact.bytes : 0);

const isThere = ({ status }: PathFact): boolean => status === 'file' || status === 'directory';

// The checks of the second half.

type FactCheck = OrderedCheck<StepWithFacts, Authorization>;

/** Its list has rule ids for each kind of path; it also finds the canonical arguments. */
const PATHS_CHECK: FactCheck = {
  claim: 'the paths are allowed',
  rules: PATH_CHECKS.flatMap(({ rules }) => rules),
  findDenial({ paths }) {
    if (paths.ok) return null;
    const { rule_id, cause } = paths.fault;
    return deniedAuthorization({ decision: 'deny', rule_id, cause: asPolicyCause(cause) });
  },
};

/** At most once: an effect with an unknown outcome must not run again before it is settled (D8). */
const OUTCOME_CHECK: FactCheck = {
  claim: 'no outcome of the same request is unknown',
  rules: ['outcome.unsettled'],
  findDenial: (subject) =>
    subject.step.unsettled.length > 0 && isUnsettled(subject) ? deniedAuthorization(UNSETTLED) : null,
};

/** Holds if the policy has no conditions. Each condition has its own rule id besides. */
export const CONDITION_CHECK: FactCheck = {
  claim: 'no condition forbids it',
  rules: ['condition.*'],
  findDenial: ({ conditions }) =>
    conditions.kind === 'deny' ? deniedAuthorization(denyCondition(conditions.rule_id)) : null,
};

/** Holds if the policy has no decision points. */
export const DECISION_POINT_CHECK: FactCheck = {
  claim: 'the decision points of the action permit it',
  rules: ['decision_point.*'],
  findDenial({ step, facts, policy }) {
    if (policy.decision_points === undefined) return null;
    const denial = decisionPointDenial(factsRequest(step, policy)?.decisions ?? [], facts?.decisions ?? []);
    return denial === null ? null : deniedAuthorization(denial);
  },
};

/** Needed by steps, promotions and exports (D7). The verdict carries the digest that approvers vote on. */
export const APPROVAL_CHECK: FactCheck = {
  claim: 'the required approvals are granted',
  rules: ['approval.*'],
  findDenial({ approval: { denial, digest, obligation } }) {
    return denial === null ? null : { ...deniedAuthorization(denial), digest, ...withObligation(obligation) };
  },
};

/** The checks of `authorizeWithFacts`, in order. */
const FACT_CHECKS: readonly FactCheck[] = [
  PATHS_CHECK,
  OUTCOME_CHECK,
  CONDITION_CHECK,
  DECISION_POINT_CHECK,
  APPROVAL_CHECK,
];

/** The check of a step whose agent run ends before its facts arrive. */
const LIFECYCLE_CHECK: CheckDescription = { claim: 'the run is not ending', rules: ['lifecycle.*'] };

/** The checks of a step that follow those of its lane, in order, as `policy explain` prints them. */
export const STEP_CHECKS: readonly CheckDescription[] = [
  ...LANE_STEP_CHECKS,
  LIFECYCLE_CHECK,
  ...FACT_CHECKS.flatMap<CheckDescription>((check) => (check === PATHS_CHECK ? PATH_CHECKS : [check])),
];

const conditionedRequest = ({ step, definition, args, facts, policy }: StepWithFacts): ConditionedRequest => ({
  definition,
  args,
  run: mediatedContext(step, policy),
  label: step.label,
  files: facts?.paths ?? [],
  counters: facts?.counters ?? [],
  at: step.received_at,
});

const GRANTED: Verdict = { decision: 'allow', rule_id: 'lane.granted', cause: null };

function decideApproval({ step, definition, args, conditions, policy }: StepWithFacts): ApprovalDecision {
  const subject = approvalSubject(step, policy);
  const rule = approvalRuleFor(policy.approvals, subject);
  if (rule === undefined && conditions.kind !== 'approval')
    // A call rule asks for an approval that no approval rule grants.
    return subject === definition.name ? NO_APPROVAL : { ...NO_APPROVAL, denial: deny('call.not_allowed') };
  const { agent, approvals: book, received_at: at } = step;
  const request = { action: definition.name, args, case_id: agent.case_id, run_id: agent.run_id };
  return approvalDecider().decide({ subject, rule, conditions, request, book, at });
}

const NO_APPROVAL: ApprovalDecision = { denial: null, digest: null, obligation: null };

const withObligation = (obligation: ApprovalObligation | null): Pick<Authorization, 'obligation'> =>
  obligation === null ? {} : { obligation };

const UNSETTLED: Verdict = { decision: 'deny', rule_id: 'outcome.unsettled', cause: 'UNSETTLED' };
const UNSETTLED_MAX = 64;

const isUnsettled = ({ step, definition, args, policy }: StepWithFacts): boolean =>
  step.unsettled.length >= UNSETTLED_MAX ||
  step.unsettled.includes(requestHash(definition, args, mediatedContext(step, policy)));

const deniedAuthorization = (verdict: Verdict): Authorization => ({ verdict, args: null, before: [], digest: null });

export const denialFault = ({ rule_id, cause }: Verdict): Fault => ({ code: 'POLICY_VIOLATION', rule_id, cause });

export const executionFault = (cause: ExecutionCause): Fault => ({
  code: 'EXECUTION_ERROR',
  rule_id: `execute.${cause.toLowerCase()}`,
  cause,
});

function definitionOf({ action }: AuthorizationSubject, { catalogue }: Policy): ActionDefinition {
  const definition = catalogue.action(action ?? '');
  if (definition === undefined) throw new InvariantError('AUTHORIZE was reached without an action');
  return definition;
}

const asPolicyCause = (cause: Fault['cause']): Verdict['cause'] =>
  cause === 'SANDBOX' || cause === 'EXTENSION' || cause === 'QUOTA' ? cause : 'LANE';

// What a step needs an approval for: its action, or the call rule that its call matches.

type Requester = Pick<AuthorizationSubject, 'agent' | 'action' | 'args' | 'mediated_run_id'>;

/** The subject of the approval rules: `call.ID` if a call rule of its lane asks for an approval, else the action. */
export function approvalSubject(step: Requester, policy: Policy): string {
  const action = step.action ?? '';
  if (action !== 'CALL_TOOL') return action;
  const lane = policy.lanes.get(mediatedContext(step, policy).lane_id ?? '');
  const { tool, input } = step.args ?? {};
  if (lane?.calls === undefined || typeof tool !== 'string' || !isJsonObject(input)) return action;
  return callApprovalSubject(lane, { tool, input }) ?? action;
}
