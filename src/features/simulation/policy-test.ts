// Decides one test of a decision table as a simulation decides a recorded step. The request says what an engine would
// have gathered.

import type { StepInput } from '../../../machines/step-memory.js';
import { artifactRef } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { toRecordedScopeValue } from '../../core/contract/free-text.js';
import type { Person } from '../../core/contract/person.js';
import { counterFact } from '../../core/contract/run/counter-fact.js';
import type { DecisionFact, DecisionQuery } from '../../core/contract/policy/decision-points.js';
import type { GatheredFacts, GatherRequest, PathFact } from '../../core/contract/run/effect.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { JsonObject } from '../../core/contract/json.js';
import { InvariantError } from '../../core/errors.js';
import { newTreeFlags } from '../../kernel/pinned-policy.js';
import { emptyBook } from '../../core/policy/policy-features.js';
import type { DECISIONS, Expectation, PolicyTest } from './policy-test-file.js';
import type { Policy } from '../../core/policy/policy.js';
import { amountsOf, limitsOf, openAccount } from '../../core/run/budget-account.js';
import { agentContextUnder } from './decided-request.js';
import { decidedErrors } from './deciding-elements.js';
import { decideStepUnder, decideUnderPolicy } from './decide-under-policy.js';
import type { AgentStart } from './recorded-decision.js';

/** The decision of a test. `quorum` and `roles` only for an approval. */
export interface TestDecision {
  readonly decision: (typeof DECISIONS)[number];
  /** Null for an action without a run of its own, which needs no rule. */
  readonly rule: string | null;
  readonly quorum?: number;
  readonly roles?: readonly string[];
  /** Why conditions could not be evaluated; only if that made the decision. */
  readonly errors?: readonly string[];
}

/** A test with its decision, and what differs from the expectation: nothing if the test passes. */
export interface TestResult {
  readonly decided: TestDecision;
  readonly differences: readonly string[];
}

/** Whom an actor is compared as. */
export type PersonSource = (names: { readonly actor: string; readonly person: string }, policy: Policy) => Person;

export function runPolicyTest(test: PolicyTest, policy: Policy, personOf: PersonSource): TestResult {
  const decided = decide(test, policy, personOf);
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

/** Policies with the behaviour of a new tree, which a decision table is about. */
const newTreePolicies = new WeakMap<Policy, Policy>();

function underNewFlags(policy: Policy): Policy {
  const known = newTreePolicies.get(policy) ?? { ...policy, flags: newTreeFlags(policy) };
  newTreePolicies.set(policy, known);
  return known;
}

function decide({ request }: PolicyTest, given: Policy, personOf: PersonSource): TestDecision {
  const policy = underNewFlags(given);
  const start = startOf(request, policy, personOf);
  const agent = agentContextUnder(start, policy);
  const started = decideUnderPolicy({ facts: start, policy }, policy);
  if ('undecidable' in started) throw new InvariantError('the start of an agent has facts that are not known');
  if (started.decision === 'deny') return deny(started.rule_id ?? '');
  const input = inputOf(request, agent);
  const step = { kind: 'step', input, start, approvals: input.approvals, ...NOT_GATHERED } as const;
  let facts: GatheredFacts | null = null;
  const { answer, rule } = decideStepUnder(step, policy, policy, (wanted) => (facts = factsFor(wanted, request)));
  if ('undecidable' in answer) throw new InvariantError('a decision table has all facts');
  if (answer.decision === 'allow') return { decision: 'allow', rule: answer.rule_id };
  if (rule === null) {
    const { action, args = {} } = request;
    const act = { start, agent, action, args: args as JsonObject, label: input.label, run_id: `${agent.run_id}.1` };
    const errors = decidedErrors({ facts: { ...step, facts, act }, policy, said: answer });
    return { ...deny(answer.rule_id ?? ''), ...(errors.length === 0 ? {} : { errors }) };
  }
  return { decision: 'approval', rule: answer.rule_id, quorum: rule.quorum, roles: rule.approver_roles };
}

const NOT_GATHERED = { gathered: null, facts: null, ending: false, act: null } as const;

/** The facts as an engine would gather them in the world of the request. */
function factsFor(
  { paths, usage, counters = [], decisions = [] }: GatherRequest,
  request: PolicyTest['request'],
): GatheredFacts {
  const { files = {} } = request;
  const sizes = Object.values(files);
  return {
    paths: paths.map((path) => factOf(path, files)),
    usage: usage ? { bytes: sizes.reduce((sum, size) => sum + size, 0), files: sizes.length } : null,
    counters: counters.map((query) => counterFact(query, usedOf(query.name, request), null)),
    decisions: decisions.map((query) => answerOf(query, request)),
  };
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

function factOf(path: string, files: NonNullable<PolicyTest['request']['files']>): PathFact {
  const bytes = Object.hasOwn(files, path) ? files[path] : undefined;
  if (bytes !== undefined) return { status: 'file', bytes, ...FILE_IDENTITY };
  const isFolder = path === SANDBOX_ROOT || Object.keys(files).some((file) => file.startsWith(`${path}/`));
  return isFolder ? { status: 'directory', ...FILE_IDENTITY } : { status: 'absent' };
}

const FILE_IDENTITY = { inode: '0', mtime_ns: '0' } as const;
const SANDBOX_ROOT = '/sandbox';
const ROOT = 'run_policytest';
const SHA = '0'.repeat(40);
const TIME = '2026-01-01T00:00:00Z';
const PROPOSAL_ID = '00000000-0000-4000-8000-000000000001';
const NOTHING_SPENT = amountsOf({});

/** The start of the agent whose proposal it is. */
function startOf(request: PolicyTest['request'], policy: Policy, personOf: PersonSource): AgentStart {
  const { role, lane, case: case_id = 'case-test', scope = {}, actor = 'agent', person = actor } = request;
  const parent: RunContext = {
    run_id: ROOT,
    run_kind: 'orchestrator',
    root_run_id: ROOT,
    parent_run_id: null,
    correlation_id: 'cor_policytest',
    contract_version: 'v1',
    policy_versions: { lanes: SHA, roles: SHA, actions: SHA, machines: '0'.repeat(64) },
    taxonomy_versions: null,
    case_id,
    actor: { actor_type: 'system', actor_id: 'orchestrator' },
    role_id: 'SYSTEM',
    lane_id: null,
    scope: Object.fromEntries(Object.entries(scope).map(([name, value]) => [name, toRecordedScopeValue(value)])),
  };
  const event = {
    actor: { actor_type: 'agent', actor_id: actor },
    person: personOf({ actor, person }, policy),
    role_id: role,
    lane_id: lane,
    budget: null,
    overlay: null,
  } as const;
  return { kind: 'agent', parent, children: 0, event, spent: NOTHING_SPENT, siblings: [] };
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
