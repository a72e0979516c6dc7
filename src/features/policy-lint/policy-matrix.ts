// The policy as a matrix: what each role may do in each lane. The functions that decide proposals decide each cell, for
// a run whose verdict depends only on role, lane and action. Its pins are known and every scope field has a value; it
// has read nothing, no overlay applies, and no request is approved. Where call rules decide by the input of a call, the
// cell says so: no input stands for the others.

import { targetFields } from '../../../machines/high-risk-run.js';
import { type ActionDefinition, RECORD_ACTIONS, type RecordActionName } from '../../core/contract/policy/catalogue.js';
import { APPROVAL_STATUS_RULES } from '../../core/contract/run/approval-rules.js';
import { decisionPointsFor, decidedActionName, approvalRuleFor, emptyBook } from '../../core/policy/policy-features.js';
import type { ArtifactRef } from '../../core/contract/artifact-ref.js';
import type { JsonObject } from '../../core/contract/json.js';
import { WRITE_MODES, type Lane } from '../../core/contract/policy/lanes.js';
import type { Role } from '../../core/contract/policy/roles.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import { InvariantError } from '../../core/errors.js';
import {
  authorizeAgent,
  authorizePrivileged,
  laneContext,
  type PrivilegedRequest,
  EMPTY_LABEL,
} from '../../core/policy/authorize-run.js';
import type { Policy } from '../../core/policy/policy.js';
import type { Verdict } from '../../core/policy/verdict.js';
import { partKindOf } from '../../core/contract/policy/native-tool-names.js';
import { authorizeLane, UNDECIDED_AUTHORIZATION } from '../../core/step/authorization.js';
import { mediatedContext } from '../../core/step/mediated-request.js';

/** A row of the matrix: an action of the policy, with its target if the arguments name one, or a high-risk run. */
export interface MatrixAction {
  /** As the matrix shows it: `WRITE_FILE`, `CALL_TOOL mail.send`, `WRITE_RECORD facts append`, `export`. */
  readonly name: string;
  /** An action's name, `promotion` or `export`. */
  readonly action: string;
  readonly args: JsonObject;
}

export interface MatrixCell {
  readonly role_id: string;
  readonly lane_id: string;
  readonly act: string;
  /**
   * `depends`: arguments decide, by the call rules of the lane (`call.*`) or by conditions (`condition.*`), or decision
   * points do (`decision_point.*`).
   */
  readonly decision: Verdict['decision'] | 'depends';
  readonly rule_id: string;
}

/**
 * Returns the decision of the policy for every role, lane and matrix action, in the order of the files. If an agent may
 * not run in a lane, the rule that denies its run denies every action there.
 */
export function buildPolicyMatrix(policy: Policy): readonly MatrixCell[] {
  const matrixActions = listMatrixActions(policy);
  const scope = fullScope(policy);
  return [...policy.roles.values()].flatMap((role) =>
    [...policy.lanes.values()].flatMap((lane) =>
      matrixActions.map((matrixAction): MatrixCell => {
        const { decision, rule_id } = decideCell(runOf(role, lane, scope), lane, matrixAction, policy);
        return { role_id: role.role_id, lane_id: lane.lane_id, act: matrixAction.name, decision, rule_id };
      }),
    ),
  );
}

/** Lists every action, tool, table and high-risk run that the policy or the catalogue names. */
export function listMatrixActions(policy: Policy): readonly MatrixAction[] {
  const actions = [...policy.actions.keys()].flatMap((action) =>
    isRecordAction(action) ? recordActions(action, policy) : [{ name: action, action, args: argsOf(action, policy) }],
  );
  const promotions = targetNames(policy, 'writes').flatMap((target) =>
    WRITE_MODES.map((mode) => ({ name: `promotion ${target} ${mode}`, action: 'promotion', args: { target, mode } })),
  );
  return [...actions, ...promotions, { name: 'export', action: 'export', args: {} }];
}

/** Every scope field that some lane requires, with a value. */
export const fullScope = (policy: Policy): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...policy.lanes.values()]
      .flatMap(({ scope }) => scope.requires)
      .filter((field) => field !== 'case_id' && field !== 'run_id')
      .map((field) => [field, 'given']),
  );

const isRecordAction = (action: string): action is RecordActionName => Object.hasOwn(RECORD_ACTIONS, action);

/** Lists one matrix action for each tool, table or mode that the arguments can name. */
function recordActions(action: RecordActionName, policy: Policy): readonly MatrixAction[] {
  switch (action) {
    case 'CALL_TOOL':
      return targetNames(policy, 'tools').map((tool) => ({
        name: `${action} ${tool}`,
        action,
        args: { tool, input: {} },
      }));
    case 'WRITE_RECORD':
      return targetNames(policy, 'writes').flatMap((target) =>
        WRITE_MODES.map((mode) => ({
          name: `${action} ${target} ${mode}`,
          action,
          args: { target, mode, record: {} },
        })),
      );
    case 'READ_RECORDS':
      return targetNames(policy, 'reads').map((target) => ({ name: `${action} ${target}`, action, args: { target } }));
  }
}

/** The registered names, then those that only lanes list, each once. */
function targetNames({ catalogue, lanes }: Policy, kind: 'tools' | 'writes' | 'reads'): readonly string[] {
  const { registrations } = catalogue;
  const registered = (kind === 'tools' ? registrations.tools : registrations.targets).map(({ name }) => name);
  const listed = [...lanes.values()].flatMap(({ allowed_actions: { tools = [], writes = [], reads = [] } }) =>
    kind === 'tools' ? tools : kind === 'writes' ? writes.map(({ table }) => table) : reads,
  );
  return [...new Set([...registered, ...listed])];
}

/** Path arguments with an extension that the policy allows, because the matrix does not show extensions. */
function argsOf(action: string, policy: Policy): JsonObject {
  const extensions = policy.actions.get(action)?.extensions ?? {};
  const { paths } = definitionOf(action, policy);
  return Object.fromEntries(paths.map((path, i) => [path, `/sandbox/file-${i}${extensions[path]?.[0] ?? '.txt'}`]));
}

const CASE = 'case-matrix';
const ROOT = 'run_matrix';
const SHA = '0'.repeat(40);

const runOf = ({ role_id, class: actor_type }: Role, { lane_id }: Lane, scope: RunContext['scope']): RunContext => ({
  run_id: `${ROOT}.1`,
  run_kind: 'agent',
  root_run_id: ROOT,
  parent_run_id: ROOT,
  correlation_id: 'cor_matrix',
  contract_version: 'v1',
  policy_versions: { lanes: SHA, roles: SHA, actions: SHA, machines: '0'.repeat(64) },
  taxonomy_versions: null,
  case_id: CASE,
  actor: { actor_type, actor_id: 'matrix' },
  role_id,
  lane_id,
  scope,
});

type CellDecision = Pick<MatrixCell, 'decision' | 'rule_id'>;

function decideCell(run: RunContext, lane: Lane, matrixAction: MatrixAction, policy: Policy): CellDecision {
  const runInLane = laneContext(run, lane);
  if (matrixAction.action === 'promotion' || matrixAction.action === 'export') {
    const started: RunContext = { ...runInLane, run_kind: matrixAction.action };
    const verdict = authorizePrivileged(started, highRiskRequest(started, matrixAction, policy), policy);
    return decideUnlessConditional(verdict, matrixAction, policy);
  }
  const agentVerdict = authorizeAgent(runInLane, policy);
  if (agentVerdict.decision === 'deny') return agentVerdict;
  if (definitionOf(matrixAction.action, policy).run_kind === null) return agentVerdict;
  const depends = isInputDecisive(runInLane, matrixAction, policy);
  // Without an input, the call rules decide nothing.
  const decided = depends ? { ...matrixAction, args: withoutInput(matrixAction.args) } : matrixAction;
  const { verdict } = authorizeLane(stepOf(runInLane, decided), policy);
  if (depends && verdict?.cause !== 'LANE') return { decision: 'depends', rule_id: 'call.*' };
  // Without a verdict the step waits for facts: role, lane and action allow it.
  return decideUnlessConditional(
    verdict ?? { decision: 'allow', rule_id: 'lane.granted', cause: null },
    matrixAction,
    policy,
  );
}

/** Conditions and decision points only narrow what is allowed, and what the arguments are is not known. */
function decideUnlessConditional(verdict: Verdict, { action, args }: MatrixAction, policy: Policy): CellDecision {
  const name = decidedActionName(action, args);
  const isConditional = policy.conditions?.canApply(name) === true;
  const isOpen = verdict.decision === 'allow' || verdict.cause === 'CONDITION' || verdict.cause === 'APPROVAL_REQUIRED';
  if (isConditional && isOpen) return { decision: 'depends', rule_id: 'condition.*' };
  if (isOpen && decisionPointsFor(name, policy).length > 0) return { decision: 'depends', rule_id: 'decision_point.*' };
  return denyUnlessApproved(verdict, action, policy);
}

/** Whether call rules of the lane of the mediated run decide calls of the tool by their input. */
function isInputDecisive(agent: RunContext, { action, args: { tool } }: MatrixAction, policy: Policy): boolean {
  if (action !== 'CALL_TOOL' || typeof tool !== 'string') return false;
  const { lane_id } = mediatedContext({ agent, action, mediated_run_id: `${agent.run_id}.1` }, policy);
  const lane = policy.lanes.get(lane_id ?? '');
  return partKindOf(tool) !== 'call' && lane?.calls?.some(({ tools }) => tools.includes(tool)) === true;
}

const withoutInput = (args: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(args).filter(([name]) => name !== 'input'));

/** D7: an action that requires an approval is denied until it is approved. */
const denyUnlessApproved = (verdict: Verdict, subject: string, { approvals }: Policy): Verdict =>
  verdict.decision === 'deny' || approvalRuleFor(approvals, subject) === undefined
    ? verdict
    : { decision: 'deny', rule_id: APPROVAL_STATUS_RULES.open, cause: 'APPROVAL_REQUIRED' };

const PAYLOAD: ArtifactRef = { artifact_id: 'sha256:', artifact_kind: 'raw_payload', hash_sha256: '0'.repeat(64) };

const stepOf = (agent: RunContext, { action, args }: MatrixAction): Parameters<typeof authorizeLane>[0] => ({
  agent,
  action,
  args,
  mediated_run_id: `${agent.run_id}.1`,
  payload: PAYLOAD,
  received_at: '2026-01-01T00:00:00.000Z',
  authorization: UNDECIDED_AUTHORIZATION,
  label: EMPTY_LABEL,
  overlay: null,
  approvals: emptyBook(agent.run_id),
  unsettled: [],
});

/** The request of a promotion of a sanitized insight, or of an export of the case. */
function highRiskRequest(run: RunContext, { action, args }: MatrixAction, policy: Policy): PrivilegedRequest {
  const { target } = args;
  const confidentiality = typeof target === 'string' ? policy.catalogue.target(target)?.confidentiality : undefined;
  const artifact_flags = action === 'export' ? ['export_bundle'] : ['sanitized_insight', ...(confidentiality ?? [])];
  return { ...targetFields(run, { action, args }, true, policy), artifact_flags, label: EMPTY_LABEL };
}

function definitionOf(action: string, { catalogue }: Policy): ActionDefinition {
  const definition = catalogue.action(action);
  if (definition === undefined) throw new InvariantError(`the policy lists ${action}, which does not exist`);
  return definition;
}
