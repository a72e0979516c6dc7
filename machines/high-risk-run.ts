// Promotions and exports (S4 §10): what a person asks for becomes the request of a mediated run, judged as every other,
// and, where policy says so, waiting for people's approval before it enters `running`.

import type { HighRiskKind, StartRunInput } from '../src/contract/run/entry.js';
import type { OverlayFact } from '../src/contract/policy/overlay.js';
import { personUnder, type Person } from '../src/contract/person.js';
import type { Actor } from '../src/contract/shapes.js';
import type { JsonObject } from '../src/contract/json.js';
import { canonicalJson } from '../src/contract/canonical-json.js';
import { sha256 } from '../src/contract/hash.js';
import type { WriteMode } from '../src/contract/policy/lanes.js';
import type { RunContext } from '../src/contract/run/run-context.js';
import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import { approvalDigest, approvalRuleFor, emptyBook, requestApproval } from '../src/policy/approval/approval.js';
import { withFindings } from '../src/policy/content/content-findings.js';
import { type PrivilegedRequest } from '../src/policy/authorize-run.js';
import type { Policy } from '../src/policy/policy.js';
import type { Verdict } from '../src/policy/verdict.js';
import { withRecordedNames } from '../src/step/recorded-names.js';
import { canLeavePartialOutputs } from '../src/step/mediated-request.js';
import { REVIEW_PHASE, RUN_VERIFICATION } from '../src/session/checks.js';
import { effectLimits } from '../src/step/execute.js';
import { EXPORT_LOCATORS, FINDINGS } from './flags.js';
import { authorizeRequest, type RequiredApproval, type MediatedRequest } from './mediated-memory.js';
import type { MediatedInput, MediatedLogic } from './mediated.js';

/** What is to be done: a record for shared knowledge, or a bundle. */
export interface HighRiskAction {
  readonly action: string;
  readonly args: JsonObject;
}

/** Of runs that are not an agent's: what people start, and the verifications and reviews of a session. */
export type StartableRunKind = HighRiskKind | 'tool_gateway';
export type StartableLogicByKind = Readonly<Record<StartableRunKind, MediatedLogic>>;

/** A promotion or export that somebody starts, or a check that a session makes. */
export interface StartRunEvent {
  readonly type: 'START_RUN';
  readonly run_kind: StartableRunKind;
  readonly actor: Actor;
  /** Whom the actor is compared as when people vote (C87). */
  readonly person?: Person | undefined;
  readonly role_id: string;
  readonly lane_id: string;
  readonly act: HighRiskAction;
  /** The act, as the artifact that brought it; null where the spec of the session holds it. */
  readonly request: ArtifactRef | null;
  /** What it is made from. */
  readonly inputs: readonly ArtifactRef[];
  readonly facts: StartRunInput['facts'];
  readonly overlay: OverlayFact | null;
  readonly time: string;
}

/** The run's input, and what policy says to it; with an approval to wait for, the verdict is not final. */
export function prepareHighRiskRun(
  run: RunContext,
  event: StartRunEvent,
  policy: Policy,
): { readonly input: MediatedInput; readonly verdict: Verdict } {
  const request = requestOf(run, event, policy);
  const verdict = authorizeRequest(run, request, policy);
  const approval = verdict.decision === 'allow' ? requiredApproval(run, event, policy) : null;
  return { input: { run, request, approval }, verdict };
}

function requestOf(
  run: RunContext,
  { act, inputs, facts, overlay, request }: StartRunEvent,
  policy: Policy,
): MediatedRequest {
  const hash = sha256(canonicalJson({ action: act.action, args: act.args, case_id: run.case_id }));
  const recorded = facts.artifact_flags;
  const lane = run.lane_id === null ? undefined : policy.lanes.get(run.lane_id);
  const artifact_flags = policy.flags.has(FINDINGS) ? withFindings(recorded, lane) : recorded;
  return {
    privileged: withRecordedNames({ ...targetFields(run, act, policy), artifact_flags, label: facts.label }, policy),
    hash,
    effect: {
      action: act.action,
      args: effectArgs(act, policy),
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

/** Flag 5: without it, an executor is given no locator, and answers with a path. */
function effectArgs({ args }: HighRiskAction, { flags }: Policy): HighRiskAction['args'] {
  if (flags.has(EXPORT_LOCATORS) || !('locator' in args)) return args;
  return Object.fromEntries(Object.entries(args).filter(([name]) => name !== 'locator'));
}

/** A promotion writes shared knowledge; an export hands out a bundle, in a lane that lists that tool. */
function targetFields(
  run: RunContext,
  { action, args }: HighRiskAction,
  { catalogue }: Policy,
): Omit<PrivilegedRequest, 'artifact_flags' | 'label'> {
  if (run.run_kind === 'tool_gateway') {
    return { ...EMPTY_REQUEST, tool: CHECK_TOOLS[action] ?? null, target_case_id: run.case_id };
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

/** What a lane lists under `tools` for the checks of a session (C68, C70). */
export const CHECK_TOOLS: Readonly<Record<string, string | undefined>> = {
  [RUN_VERIFICATION]: 'session.verify',
  [REVIEW_PHASE]: 'session.review',
};

/** What a lane lists under `tools` for runs that make a bundle. */
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

/** S4-74: what has been promoted, and what it was made from. Its content stands in the request, nothing twice. */
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
  { run_kind, act, person, time }: StartRunEvent,
  policy: Policy,
): RequiredApproval | null {
  const rule = approvalRuleFor(policy.approvals, run_kind);
  if (rule === undefined) return null;
  const { run_id, case_id, actor } = run;
  const digest = approvalDigest({ action: act.action, args: act.args, case_id, run_id });
  const approvalRequest = {
    digest,
    name: run_kind,
    requested_by: actor.actor_id,
    requester: personUnder(person, policy.flags),
    at: time,
  };
  return { digest, rule, book: requestApproval(emptyBook(run_id), approvalRequest, rule) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
