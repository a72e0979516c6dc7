// The four features that can decide by a policy, as core calls them: conditions, call rules, decision points and
// approvals. Each installs what implements its interface before the first policy that needs it is loaded (decision
// 0095). A policy without any of them runs no code of a feature.

import type { Catalogue, ActionDefinition } from '../contract/policy/catalogue.js';
import { type JsonObject, canonicalJson } from '../contract/json.js';
import type { Label } from '../contract/policy/labels.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { Group, Role } from '../contract/policy/roles.js';
import type { OptionalFiles } from '../contract/policy/pins.js';
import type { CounterFact, CounterQuery } from '../contract/run/counter-fact.js';
import type { PathFact } from '../contract/run/effect.js';
import type { ConcernedCase } from '../contract/run/operator-act.js';
import type { RunContext } from '../contract/run/run-context.js';
import { PolicyError } from '../errors.js';
import type { PolicyFinding, DECISION_POINT_RULES } from './files/policy-finding.js';
import type { NamedPolicyFile } from './files/read-policy-file.js';
import { approvalSubjectOf, type CallRule } from '../contract/policy/call-rules.js';
import type { DecisionFact, DecisionPoint, DecisionQuery } from '../contract/policy/decision-points.js';
import type { Verdict } from './verdict.js';
import { sha256 } from '../contract/hash.js';
import type { Person } from '../contract/person.js';
import type {
  ApprovalBallot,
  ApprovalBook,
  ApprovalEntry,
  ApprovalObligation,
  ApprovalRule,
  ApprovalVote,
} from '../contract/run/approval.js';
import type { ApprovalRuleId, ApprovalStatus } from '../contract/run/approval-rules.js';
import type { ActionsPolicy } from '../contract/policy/actions-policy.js';

// Conditions, and the counters that they read: the feature `conditions`.

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

/** The members of a policy that conditions depend on. */
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

const NO_CONDITIONS: ConditionVerdict = { kind: 'none' };

/** What the conditions say of a step; nothing for a policy without them. */
export const conditionVerdict = (request: ConditionedRequest, policy: ConditionedPolicy): ConditionVerdict =>
  policy.conditions?.ofStep(request, policy) ?? NO_CONDITIONS;

/** What the conditions say of a run that a person starts; nothing for a policy without them. */
export const runConditionVerdict = (run: ConditionedRun, policy: ConditionedPolicy): ConditionVerdict =>
  policy.conditions?.ofRun(run, policy) ?? NO_CONDITIONS;

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
  needsLedgerFacts(policy)
    ? (policy.conditions?.counterQueries(step, agent, policy) ?? NO_COUNTER_QUERIES)
    : NO_COUNTER_QUERIES;

const NO_COUNTER_QUERIES: readonly CounterQuery[] = [];

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

let installedLanguage: ConditionLanguage | null = null;

export const installConditionLanguage = (language: ConditionLanguage): void => {
  installedLanguage = language;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function conditionLanguage(): ConditionLanguage {
  if (installedLanguage === null) throw notInstalledError('has conditions or counters', CONDITIONS);
  return installedLanguage;
}

/** The name of the feature. */
export const CONDITIONS = 'conditions';

// The call rules of a lane: the feature `hooks` decides calls by them.

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

let installedCallDecider: CallDecider | null = null;

export const installCallDecider = (decider: CallDecider): void => {
  installedCallDecider = decider;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function callDecider(): CallDecider {
  if (installedCallDecider === null) throw notInstalledError('has call rules', HOOKS);
  return installedCallDecider;
}

/** Decides a call by the call rules of a lane: a lane without them allows it. */
export const callRuleVerdict = (rules: CallRules, call: JudgedCall): CallRuleVerdict =>
  rules.calls === undefined ? CALL_ALLOWED : callDecider().decide(rules, call);

const CALL_ALLOWED: CallRuleVerdict = { decision: 'allow' };

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

// Decision points: the feature `decision-points` makes the queries and reads the answers.

/** The members of a policy that decision points depend on. */
export interface DecisionPointPolicy {
  /** They are asked before an action is allowed. Absent: none. */
  readonly decision_points?: readonly DecisionPoint[];
}

/** A step that decision points are asked about; `name` is that of conditions, with the tool or table. */
export interface QueriedStep {
  readonly name: string;
  /** The name of the action alone. */
  readonly action: string;
  readonly args: JsonObject;
  /** Canonical paths. */
  readonly paths: readonly string[];
}

/** A mistake, and the JSON pointer to its place in the actions file. */
export interface DecisionPointMistake {
  readonly pointer: string;
  readonly rule: (typeof DECISION_POINT_RULES)[number];
  readonly message: string;
}

/** What core requests of decision points. */
export interface DecisionPointRules {
  /** The mistakes that a schema cannot express. */
  findMistakes(points: readonly DecisionPoint[], catalogue: Catalogue): Iterable<DecisionPointMistake>;
  /**
   * One query of each decision point, or one for each path: all must permit.
   * @param run the mediated run
   */
  queries(points: readonly DecisionPoint[], step: QueriedStep, run: RunContext): readonly DecisionQuery[];
  /** The denial by the first decision point that does not permit; null if all permit. */
  denial(queries: readonly DecisionQuery[], facts: readonly DecisionFact[]): Verdict | null;
}

let installedPointRules: DecisionPointRules | null = null;

export const installDecisionPoints = (rules: DecisionPointRules): void => {
  installedPointRules = rules;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function decisionPointRules(): DecisionPointRules {
  if (installedPointRules === null) throw notInstalledError('has decision points', DECISION_POINTS);
  return installedPointRules;
}

/** The decision points that are asked about an action. */
export const decisionPointsFor = (name: string, { decision_points }: DecisionPointPolicy): readonly DecisionPoint[] =>
  decision_points?.filter(({ actions }) => actions.includes(name)) ?? NO_POINTS;

const NO_POINTS: readonly DecisionPoint[] = [];

/** What the decision points of a policy are asked about a step. @param run the mediated run */
export function decisionQueries(
  step: QueriedStep,
  run: RunContext,
  policy: DecisionPointPolicy,
): readonly DecisionQuery[] {
  const points = decisionPointsFor(step.name, policy);
  return points.length === 0 ? NO_DECISION_QUERIES : decisionPointRules().queries(points, step, run);
}

const NO_DECISION_QUERIES: readonly DecisionQuery[] = [];

/** The denial by the first decision point that does not permit; null if all permit. */
export const decisionPointDenial = (
  queries: readonly DecisionQuery[],
  facts: readonly DecisionFact[],
): Verdict | null => (queries.length === 0 ? null : decisionPointRules().denial(queries, facts));

/** The name of the feature. */
export const DECISION_POINTS = 'decision-points';

// Approvals (D7): the feature `approvals` stores the requests and counts the votes.

/** The exact effect to approve, and its run: what the approvers have seen. */
export interface ApprovalRequest {
  /** `promotion`, `export`, or the action's name. */
  readonly action: string;
  readonly args: JsonObject;
  readonly case_id: string | null;
  /** The requesting run. */
  readonly run_id: string;
}

/**
 * The SHA-256 of the request's canonical text: another amount, case or run gives another digest.
 * @returns 64 lower-case hex digits
 * @throws InvariantError for arguments that JSON cannot represent; those of a parsed proposal always can
 */
export const approvalDigest = ({ action, args, case_id, run_id }: ApprovalRequest): string =>
  sha256(canonicalJson({ action, args, case_id, run_id }));

/** A request, with its time and its requester. */
export interface NewApprovalRequest {
  readonly digest: string;
  readonly name: string;
  readonly requested_by: string;
  /** The person that the requester is compared as. */
  readonly requester?: Person | undefined;
  readonly at: string;
  /** What conditions ask of the approvers. */
  readonly obligation?: ApprovalObligation | undefined;
}

/** The result of a ballot for one digest. `rule_id` goes to the audit. */
export interface ApprovalVerdict {
  readonly digest: string;
  /** Whether the ballot has changed the book. */
  readonly counted: boolean;
  readonly rule_id: ApprovalRuleId;
}

/** What ballots are judged by: the pinned policy, and the overlay. */
export interface ApprovalPolicy {
  readonly approvals: readonly ApprovalRule[];
  readonly roles: ReadonlyMap<string, Role>;
  /** The approvers who are suspended now (D1). Their earlier votes do not count either. */
  readonly isSuspended?: SuspensionCheck | null;
}

export type SuspensionCheck = (
  voter: Pick<ApprovalVote, 'actor_id' | 'role_id'> & { readonly person?: Person | undefined },
) => boolean;

/** A step that an approval rule or a condition lets happen only with an approval. */
export interface StepToApprove {
  /** Its action, or `call.ID` for a call rule. */
  readonly subject: string;
  /** The approval rule of the subject. */
  readonly rule: ApprovalRule | undefined;
  readonly conditions: ConditionVerdict;
  readonly request: ApprovalRequest;
  readonly book: ApprovalBook;
  readonly at: string;
}

/** What the rules of approvals and conditions say of an action that is otherwise allowed. */
export interface ApprovalDecision {
  readonly denial: Verdict | null;
  /** What approvers vote on; null if the action needs no approval. */
  readonly digest: string | null;
  readonly obligation: ApprovalObligation | null;
}

/** The members of a policy that a FINISH with pending requests depends on. */
export type FinishPolicy = Pick<ActionsPolicy, 'knobs'>;

/** An action of a run, and the requests of the run. */
export interface ActionWithRequests {
  readonly action: string | null;
  readonly approvals: ApprovalBook;
  readonly received_at: string;
}

/** What keeps the requests of runs, and counts votes. All times are recorded ones. */
export interface ApprovalDecider {
  /** Whether the approval of a step is granted. */
  decide(step: StepToApprove): ApprovalDecision;
  /** Requests an approval. @throws InvariantError for a rule of another subject, or an invalid time */
  request(book: ApprovalBook, request: NewApprovalRequest, rule: ApprovalRule): ApprovalBook;
  /** The book with what conditions ask now of a request that waits or is approved. */
  tighten(book: ApprovalBook, digest: string, required: ApprovalObligation, rule: ApprovalRule): ApprovalBook;
  /**
   * Counts a ballot: each digest is judged alone. @throws InvariantError for an invalid time
   * @returns the book, and a verdict for each digest in the ballot's order
   */
  countBallot(
    book: ApprovalBook,
    ballot: ApprovalBallot,
    policy: ApprovalPolicy,
  ): { readonly book: ApprovalBook; readonly verdicts: readonly ApprovalVerdict[] };
  /** A request without the votes of suspended approvers (D1). */
  withoutVotes(entry: ApprovalEntry, isSuspended: SuspensionCheck): ApprovalEntry;
  /** Evaluates a request at the time of its execution. @param book the book as it counts then (`withoutVotes`) */
  status(book: ApprovalBook, digest: string, now: string, rule: ApprovalRule): ApprovalStatus;
  /** Uses an approval up. @throws InvariantError unless the status is `granted` */
  consume(book: ApprovalBook, digest: string, at: string, rule: ApprovalRule): ApprovalBook;
  /** What one request needs, by its conditions and the rule of its subject. */
  obligation(required: ConditionRequirement, rule: ApprovalRule | undefined): ApprovalObligation;
  /** The denial of a FINISH that the policy does not allow now; null if it is allowed, or has to wait. */
  finishDenial(step: ActionWithRequests, policy: FinishPolicy): Verdict | null;
  /** The requests that a FINISH waits for; none if it need not wait. */
  awaitedRequests(step: ActionWithRequests, policy: FinishPolicy): readonly string[];
}

/** What conditions require of approvers. */
export type ConditionRequirement = Extract<ConditionVerdict, { kind: 'approval' }>;

let installedApprovalDecider: ApprovalDecider | null = null;

export const installApprovalDecider = (decider: ApprovalDecider): void => {
  installedApprovalDecider = decider;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function approvalDecider(): ApprovalDecider {
  if (installedApprovalDecider === null) throw notInstalledError('needs approvals', APPROVALS);
  return installedApprovalDecider;
}

/** The approval rule of a subject; undefined if it needs no approval by a rule. */
export const approvalRuleFor = (rules: readonly ApprovalRule[], subject: string): ApprovalRule | undefined =>
  rules.find((rule) => rule.for === subject);

/** The rule by which votes on a request count; undefined if it needs no approval. */
export function effectiveRule(
  subject: string,
  rule: ApprovalRule | undefined,
  obligation: ApprovalObligation | null | undefined,
): ApprovalRule | undefined {
  if (obligation == null) return rule;
  const { approver_roles, quorum, expires_minutes, identity } = obligation;
  return { for: subject, approver_roles, quorum, expires_minutes, ...(identity === undefined ? {} : { identity }) };
}

/** The rule of a request that has been made. */
export const ruleOfEntry = (
  rules: readonly ApprovalRule[],
  { name, obligation }: Pick<ApprovalEntry, 'name' | 'obligation'>,
): ApprovalRule | undefined => effectiveRule(name, approvalRuleFor(rules, name), obligation);

/** The book of a run without requests. */
export const emptyBook = (run_id: string): ApprovalBook => ({ run_id, entries: [] });

/** The denial of a FINISH by requests that wait for their approval; null for other steps. */
export const finishDenial = (step: ActionWithRequests, policy: FinishPolicy): Verdict | null =>
  isFinishWithRequests(step) ? approvalDecider().finishDenial(step, policy) : null;

/** The requests that a FINISH waits for; none for other steps. */
export const awaitedRequests = (step: ActionWithRequests, policy: FinishPolicy): readonly string[] =>
  isFinishWithRequests(step) ? approvalDecider().awaitedRequests(step, policy) : NO_REQUESTS;

const isFinishWithRequests = ({ action, approvals }: ActionWithRequests): boolean =>
  action === 'FINISH' && approvals.entries.length > 0;
const NO_REQUESTS: readonly string[] = [];

/** The name of the feature. */
export const APPROVALS = 'approvals';

// The names of the actions of steps by which what a policy says of them is chosen: with the tool or table that the
// arguments name.

/** Actions whose arguments name what they act on: there is one for each tool or table. */
export const NAMED_ACTIONS: readonly string[] = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'];

/** The name of an action with these arguments, such as `WRITE_FILE` or `CALL_TOOL:payments.refund`. */
export function decidedActionName(name: string, args: JsonObject): string {
  if (!NAMED_ACTIONS.includes(name)) return name;
  const named = args[name === 'CALL_TOOL' ? 'tool' : 'target'];
  return `${name}:${typeof named === 'string' ? named : ''}`;
}

/** All of them for a policy. An action without a run of its own has no effect, so nothing decides it. */
export const decidedActionNames = ({ actions, registrations }: Catalogue): ReadonlySet<string> =>
  new Set([
    ...actions
      .filter(({ run_kind, name }) => run_kind !== null && !NAMED_ACTIONS.includes(name))
      .map(({ name }) => name),
    ...registrations.tools.map(({ name }) => `CALL_TOOL:${name}`),
    ...registrations.targets.flatMap(({ name }) => [`WRITE_RECORD:${name}`, `READ_RECORDS:${name}`]),
  ]);

const notInstalledError = (needed: string, feature: string): PolicyError =>
  new PolicyError({
    code: 'POLICY_UNSUPPORTED',
    message: `the policy ${needed}, and this installation does not have the feature ${feature}`,
  });
