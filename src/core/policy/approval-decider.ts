// The approvals of a policy, as the rest of the platform uses them (D7). The feature `approvals` keeps the requests and
// counts the votes; it is installed before the first policy that can ask for an approval is loaded.

import { canonicalJson } from '../contract/canonical-json.js';
import { sha256 } from '../contract/hash.js';
import type { JsonObject } from '../contract/json.js';
import type { Person } from '../contract/person.js';
import type { Role } from '../contract/policy/roles.js';
import type {
  ApprovalBallot,
  ApprovalBook,
  ApprovalEntry,
  ApprovalObligation,
  ApprovalRule,
  ApprovalVote,
} from '../contract/run/approval.js';
import type { ApprovalRuleId, ApprovalStatus } from '../contract/run/approval-rules.js';
import { PolicyError } from '../errors.js';
import type { ConditionVerdict } from './conditions.js';
import type { Policy } from './policy.js';
import type { Verdict } from './verdict.js';

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
  finishDenial(step: ActionWithRequests, policy: Policy): Verdict | null;
  /** The requests that a FINISH waits for; none if it need not wait. */
  awaitedRequests(step: ActionWithRequests, policy: Policy): readonly string[];
}

/** What conditions require of approvers. */
export type ConditionRequirement = Extract<ConditionVerdict, { kind: 'approval' }>;

let installed: ApprovalDecider | null = null;

export const installApprovalDecider = (decider: ApprovalDecider): void => {
  installed = decider;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function approvalDecider(): ApprovalDecider {
  if (installed !== null) return installed;
  const message = 'the policy needs approvals, and this installation does not have the feature approvals';
  throw new PolicyError({ code: 'POLICY_UNSUPPORTED', message });
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
export const finishDenial = (step: ActionWithRequests, policy: Policy): Verdict | null =>
  isFinishWithRequests(step) ? approvalDecider().finishDenial(step, policy) : null;

/** The requests that a FINISH waits for; none for other steps. */
export const awaitedRequests = (step: ActionWithRequests, policy: Policy): readonly string[] =>
  isFinishWithRequests(step) ? approvalDecider().awaitedRequests(step, policy) : NO_REQUESTS;

const isFinishWithRequests = ({ action, approvals }: ActionWithRequests): boolean =>
  action === 'FINISH' && approvals.entries.length > 0;
const NO_REQUESTS: readonly string[] = [];

/** The name of the feature. */
export const APPROVALS = 'approvals';
