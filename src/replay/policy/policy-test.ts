// Decides one test of a decision table, from the bytes of its proposal to its approval, with the functions that decide
// the steps of a run.

import { sha256 } from '../../contract/hash.js';
import type { DecisionFact, DecisionQuery } from '../../contract/policy/decision-points.js';
import { authorizeStep, isPrivileged } from '../../../machines/authorize-step.js';
import { newStepMemory, type StepInput } from '../../../machines/step-memory.js';
import { artifactRef } from '../../contract/artifact-ref.js';
import type { GatheredFacts, PathFact } from '../../contract/run/effect.js';
import type { RunContext } from '../../contract/run/run-context.js';
import { approvalRuleFor, emptyBook } from '../../policy/approval/approval.js';
import { effectiveRule } from '../../policy/approval/obligation.js';
import { authorizeAgent, laneContext } from '../../policy/authorize-run.js';
import type { Policy } from '../../policy/policy.js';
import { limitsOf, openAccount } from '../../run/budget.js';
import { approvalSubject } from '../../step/approval-subject.js';
import { requireGatherRequest, type Authorization } from '../../step/authorization.js';
import { runCheckPhases } from '../../step/step-draft.js';
import type { DECISIONS, Expectation, PolicyTest } from '../../policy/files/policy-test-file.js';

/** The decision of a test. `quorum` and `roles` only for an approval. */
export interface TestDecision {
  readonly decision: (typeof DECISIONS)[number];
  /** Null for an action without a run of its own, which needs no rule. */
  readonly rule: string | null;
  readonly quorum?: number;
  readonly roles?: readonly string[];
}

/** A test with its decision, and what differs from the expectation: nothing if the test passes. */
export interface TestResult {
  readonly decided: TestDecision;
  readonly differences: readonly string[];
}

export function runPolicyTest(test: PolicyTest, policy: Policy): TestResult {
  const decided = decide(test, policy);
  return { decided, differences: [...findDifferences(test.expect, decided)] };
}

function* findDifferences(expected: Expectation, decided: TestDecision): Generator<string> {
  const { decision, rule, quorum, roles } = expected;
  if (decision !== decided.decision) yield `expected ${decision}, decided ${decided.decision}`;
  if (rule !== undefined && rule !== decided.rule) yield `expected rule ${rule}, decided ${decided.rule ?? 'none'}`;
  if (quorum !== undefined && quorum !== decided.quorum) {
    yield `expected ${quorum} approvals, decided ${decided.quorum ?? 'none'}`;
  }
  const expectedRoles = roles?.toSorted().join(', ');
  const decidedRoles = decided.roles?.toSorted().join(', ') ?? 'none';
  if (expectedRoles !== undefined && expectedRoles !== decidedRoles) {
    yield `expected approvers ${expectedRoles}, decided ${decidedRoles}`;
  }
}

const deny = (rule: string): TestDecision => ({ decision: 'deny', rule });

function decide({ request }: PolicyTest, policy: Policy): TestDecision {
  const run = runOf(request, policy);
  const started = authorizeAgent(run, policy);
  if (started.decision === 'deny') return deny(started.rule_id);
  const input = inputOf(request, run);
  const step = runCheckPhases(newStepMemory(input), policy);
  if (step.fault !== null) return deny(step.fault.rule_id);
  const atStart = authorizeStep(step, { kind: 'start', account: input.account }, policy);
  if (atStart.verdict !== null) return toDecision(step, atStart, policy);
  if (!isPrivileged(step, policy)) return { decision: 'allow', rule: null };
  const { paths, usage, counters = [], decisions = [] } = requireGatherRequest(step, policy);
  const facts: GatheredFacts = {
    paths: paths.map((path) => factOf(path, request.files)),
    usage: usage ? { bytes: 0, files: 0 } : null,
    counters: counters.map(({ name, key, adds }) => ({ name, key, used: usedOf(name, request), since: null, adds })),
    decisions: decisions.map((query) => answerOf(query, request)),
  };
  return toDecision(step, authorizeStep(step, { kind: 'facts', facts }, policy), policy);
}

function toDecision(
  step: Parameters<typeof approvalSubject>[0],
  { verdict, obligation }: Authorization,
  policy: Policy,
): TestDecision {
  if (verdict === null || verdict.decision === 'allow') return { decision: 'allow', rule: verdict?.rule_id ?? null };
  if (verdict.cause !== 'APPROVAL_REQUIRED') return deny(verdict.rule_id);
  const subject = approvalSubject(step, policy);
  const rule = effectiveRule(subject, approvalRuleFor(policy.approvals, subject), obligation);
  const { quorum = 0, approver_roles: roles = [] } = rule ?? {};
  return { decision: 'approval', rule: verdict.rule_id, quorum, roles };
}

const answerOf = (
  { point: { name }, body }: DecisionQuery,
  { decisions = {} }: PolicyTest['request'],
): DecisionFact => ({
  name,
  answer: (Object.hasOwn(decisions, name) ? decisions[name] : undefined) ?? 'permit',
  request_hash: sha256(body),
  cached: false,
});

const usedOf = (name: string, { counters = {} }: PolicyTest['request']): number =>
  Object.hasOwn(counters, name) ? (counters[name] ?? 0) : 0;

function factOf(path: string, files: PolicyTest['request']['files'] = {}): PathFact {
  const bytes = Object.hasOwn(files, path) ? files[path] : undefined;
  if (bytes !== undefined) return { status: 'file', bytes, ...FILE_IDENTITY };
  const isFolder = Object.keys(files).some((file) => file.startsWith(`${path}/`));
  return isFolder ? { status: 'directory', ...FILE_IDENTITY } : { status: 'absent' };
}

const FILE_IDENTITY = { inode: '0', mtime_ns: '0' } as const;
const ROOT = 'run_policytest';
const SHA = '0'.repeat(40);
const TIME = '2026-01-01T00:00:00Z';
const PROPOSAL_ID = '00000000-0000-4000-8000-000000000001';

function runOf(
  { role, lane: lane_id, case: case_id = 'case-test', scope = {}, actor }: PolicyTest['request'],
  policy: Policy,
) {
  const run: RunContext = {
    run_id: `${ROOT}.1`,
    run_kind: 'agent',
    root_run_id: ROOT,
    parent_run_id: ROOT,
    correlation_id: 'cor_policytest',
    contract_version: 'v1',
    policy_versions: { lanes: SHA, roles: SHA, actions: SHA, machines: '0'.repeat(64) },
    taxonomy_versions: null,
    case_id,
    actor: { actor_type: 'agent', actor_id: actor ?? 'agent' },
    role_id: role,
    lane_id,
    scope,
  };
  const lane = policy.lanes.get(lane_id);
  return lane === undefined ? run : laneContext(run, lane);
}

function inputOf({ action, args = {}, time = TIME, label = {} }: PolicyTest['request'], agent: RunContext): StepInput {
  const proposal = { schema_version: '1.0.0', id: PROPOSAL_ID, reasoning: 'A test of policy.', action, args };
  const raw = Buffer.from(JSON.stringify(proposal));
  return {
    agent,
    exposure: 'detailed',
    input_id: 'policy-test',
    step_index: 1,
    received_at: `${time.slice(0, -1)}.000Z`,
    payload: artifactRef({ kind: 'raw_payload', case_id: agent.case_id, bytes: raw }),
    raw,
    seen: null,
    recorded_response: null,
    mediated_runs: 0,
    account: openAccount(limitsOf({})),
    label: { cases: label.cases ?? [], flags: label.flags ?? [], many: false },
    approvals: emptyBook(agent.run_id),
    unsettled: [],
    overlay: null,
  };
}
