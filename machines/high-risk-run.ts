// Runs that people start: promotions, exports (S4 §10) and acts of operators. Turns a person's request into the request
// of a mediated run. It is judged like every
// other request and, if policy requires it, waits for approval before it enters `running`.

import type { HighRiskKind, StartRunInput } from '../src/core/contract/run/entry.js';
import { isOperatorAction, OPERATOR_ACTS } from '../src/core/contract/run/operator-act.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { ApprovalObligation } from '../src/core/contract/run/approval.js';
import type { Person } from '../src/core/contract/person.js';
import { LATEST_TIMESTAMP_MS, type Actor } from '../src/core/contract/shapes.js';
import { type JsonObject, canonicalJson } from '../src/core/contract/json.js';
import { type ArtifactRef } from '../src/core/contract/artifact-ref.js';
import { sha256 } from '../src/core/contract/hash.js';
import type { WriteMode } from '../src/core/contract/policy/lanes.js';
import type { RunContext } from '../src/core/contract/run/run-context.js';
import {
  approvalDecider,
  approvalDigest,
  approvalRuleFor,
  effectiveRule,
  emptyBook,
} from '../src/core/policy/policy-features.js';
import { withFindings } from '../src/core/policy/content/content-findings.js';
import { type PrivilegedRequest } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import { denyCondition, type Verdict } from '../src/core/policy/verdict.js';
import {
  withRecordedNames,
  canLeavePartialOutputs,
  effectLimits,
  authorizeRequest,
} from '../src/core/step/mediated-request.js';
import { type RequiredApproval, type MediatedRequest } from './mediated-memory.js';
import type { MediatedInput, MediatedLogic } from './mediated.js';
import { askConditions, subjectOf } from '../src/core/step/run-conditions.js';

/** The requested action: a record for shared knowledge, a bundle, or an act of an operator. */
export interface HighRiskAction {
  readonly action: string;
  readonly args: JsonObject;
  /** The tool that a lane must list for it, if a feature starts the run; absent for a request of a person. */
  readonly tool?: string;
}

/** The kinds of runs that no agent starts: those that people start, and those that features start. */
export type StartableRunKind = HighRiskKind | 'tool_gateway';
export type StartableLogicByKind = Readonly<Record<StartableRunKind, MediatedLogic>>;

/** Starts a promotion or export for a person, or a run of a feature. */
export interface StartRunEvent {
  readonly type: 'START_RUN';
  readonly run_kind: StartableRunKind;
  readonly actor: Actor;
  /** The person that the actor is compared as when approvers vote (C87). */
  readonly person?: Person | undefined;
  readonly role_id: string;
  readonly lane_id: string;
  readonly act: HighRiskAction;
  /** The request, as the artifact that came with the input; null if a feature starts the run. */
  readonly request: ArtifactRef | null;
  /** The sources of the promotion or export. */
  readonly inputs: readonly ArtifactRef[];
  readonly facts: StartRunInput['facts'];
  readonly overlay: OverlayFact | null;
  readonly time: string;
}

/** Builds the run's request and its verdict by policy. The verdict is not final if the run needs approval. */
export function prepareHighRiskRun(
  run: RunContext,
  event: StartRunEvent,
  policy: Policy,
): { readonly input: MediatedInput; readonly verdict: Verdict } {
  const request = requestOf(run, event, policy);
  const verdict = authorizeRequest(run, request, policy);
  if (verdict.decision === 'deny') return { input: { run, request, approval: null }, verdict };
  const conditions = askConditions(run, request, event.time, policy);
  if (conditions.kind === 'deny') {
    return { input: { run, request, approval: null }, verdict: denyCondition(conditions.rule_id) };
  }
  const approval = requiredApproval(run, event, { subject: subjectOf(run, request), ...conditions }, policy);
  return { input: { run, request: withReportDue(request, approval, event.time), approval }, verdict };
}

/** The command of an operator executes the act, and reports the outcome within this time after its approval. */
export const OPERATOR_REPORT_MINUTES = 1_440;

/** An operator's act waits for the report of the command that executes it. */
function withReportDue(request: MediatedRequest, approval: RequiredApproval | null, time: string): MediatedRequest {
  if (request.privileged.operator !== true) return request;
  const minutes = (approval?.rule.expires_minutes ?? 0) + OPERATOR_REPORT_MINUTES;
  const due = Math.min(Date.parse(time) + minutes * 60_000, LATEST_TIMESTAMP_MS);
  return { ...request, report_due: new Date(due).toISOString() };
}

function requestOf(
  run: RunContext,
  { act, inputs, facts, overlay, request }: StartRunEvent,
  policy: Policy,
): MediatedRequest {
  const hash = sha256(canonicalJson({ action: act.action, args: act.args, case_id: run.case_id }));
  // Stryker disable next-line ConditionalExpression: no policy has a lane with the id null
  const lane = run.lane_id === null ? undefined : policy.lanes.get(run.lane_id);
  const artifact_flags = withFindings(facts.artifact_flags, lane);
  return {
    privileged: withRecordedNames({
      ...targetFields(run, act, request !== null, policy),
      artifact_flags,
      label: facts.label,
    }),
    hash,
    effect: {
      action: act.action,
      args: act.args,
      case_id: run.case_id,
      request_hash: hash,
      before: [],
      partial_outputs: canLeavePartialOutputs(run, policy),
      limits: effectLimits(policy),
    },
    idempotency_key: null,
    in_commit: run.run_kind === 'promotion' && policy.catalogue.target(textOf(act.args['target']))?.place === 'ledger',
    idempotent: false,
    inputs: request === null ? inputs : [request, ...inputs],
    written: run.run_kind === 'promotion' ? insightRef(act, inputs) : null,
    retry: null,
    overlay,
  };
}

/** A promotion writes shared knowledge. An export returns a bundle, in a lane that lists its tool. */
export function targetFields(
  run: RunContext,
  { action, args, tool }: HighRiskAction,
  isFromPerson: boolean,
  { catalogue }: Policy,
): Omit<PrivilegedRequest, 'artifact_flags' | 'label'> {
  if (run.run_kind === 'tool_gateway' && isFromPerson) {
    const operatorTool = isOperatorAction(action) ? OPERATOR_ACTS[action].tool : null;
    return { ...EMPTY_REQUEST, tool: operatorTool, target_case_id: run.case_id, operator: true };
  }
  if (run.run_kind === 'tool_gateway') {
    return { ...EMPTY_REQUEST, tool: tool ?? null, target_case_id: run.case_id };
  }
  if (run.run_kind === 'export') {
    return { ...EMPTY_REQUEST, tool: EXPORT_TOOL, target_case_id: run.case_id, destination: 'outside', plane: 'case' };
  }
  const table = textOf(args['target']);
  const mode: WriteMode = args['mode'] === 'upsert' ? 'upsert' : 'append';
  const target = catalogue.target(table);
  const shared = target?.plane === 'shared';
  const unregistered =
    target === undefined ? 'target.not_registered' : target.modes.includes(mode) ? null : 'target.mode_not_registered';
  return {
    ...EMPTY_REQUEST,
    write: { table, mode },
    target_case_id: shared ? null : run.case_id,
    plane: shared ? 'shared' : 'case',
    unregistered,
    promotes: true,
  };
}

/** The tool that a lane must list for runs that create a bundle. */
export const EXPORT_TOOL = 'export_bundle.create';

const EMPTY_REQUEST = {
  tool: null,
  write: null,
  read: null,
  target_case_id: null,
  destination: 'platform',
  plane: 'case',
  unregistered: null,
  promotes: false,
} as const;

/** S4-74: a reference to the promoted record and its sources. The content itself is in the request. */
function insightRef({ args }: HighRiskAction, inputs: readonly ArtifactRef[]): ArtifactRef {
  const text = canonicalJson(args['record'] ?? null);
  const hash = sha256(text);
  return {
    artifact_id: `sha256:${hash}`,
    artifact_kind: 'sanitized_insight',
    hash_sha256: hash,
    byte_size: Buffer.byteLength(text),
    scope: 'shared',
    lineage: { derived_from: inputs.map(({ artifact_id }) => artifact_id), transformation: 'promotion' },
  };
}

function requiredApproval(
  run: RunContext,
  { act, person, time }: StartRunEvent,
  { subject, obligation }: { readonly subject: string; readonly obligation: ApprovalObligation | null },
  policy: Policy,
): RequiredApproval | null {
  const rule = effectiveRule(subject, approvalRuleFor(policy.approvals, subject), obligation);
  if (rule === undefined) return null;
  const { run_id, case_id, actor } = run;
  const digest = approvalDigest({ action: act.action, args: act.args, case_id, run_id });
  const approvalRequest = {
    digest,
    name: subject,
    requested_by: actor.actor_id,
    requester: person,
    at: time,
    obligation: obligation ?? undefined,
  };
  return { digest, rule, book: approvalDecider().request(emptyBook(run_id), approvalRequest, rule) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
