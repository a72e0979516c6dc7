// One proposal, decided in every way: by a decision table, by a live tree with the counters of an engine, by a
// simulation of that tree, and by its explanation.

import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { toRecordedScopeValue } from '../../../src/core/contract/free-text.js';
import type { GatherRequest, PathFact, SandboxFacts } from '../../../src/core/contract/run/effect.js';
import type { Entry, RecordedInput } from '../../../src/core/contract/run/entry.js';
import type { PolicyTest } from '../../../src/features/simulation/policy-test-file.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { CounterBook } from '../../../src/features/conditions/counters/counter-book.js';
import { withCounters } from '../../../src/features/conditions/counters/ledger-counters.js';
import type { Decision } from '../../../src/kernel/decision.js';
import { Tree, findFactsRequest } from '../../../src/kernel/tree.js';
import { decideUnderPolicy } from '../../../src/features/simulation/decide-under-policy.js';
import { DecisionFold } from '../../../src/features/simulation/decision-fold.js';
import { explain } from '../../../src/features/simulation/explain.js';
import { runPolicyTest } from '../../../src/features/simulation/policy-test.js';
import type { RecordedDecision } from '../../../src/features/simulation/recorded-decision.js';
import { compareDecision } from '../../../src/features/simulation/simulate.js';
import { asNamedPerson } from '../../../src/runtime/agents/caller-input.js';
import { type RandomPolicy, randomPolicy, randomRequest } from './one-path-policies.js';
import { random } from '../../fixtures/random.js';

const ROOT = 'run_onepath';
const AGENT = `${ROOT}.1`;

/** Every way in words: equal for equal decisions. */
interface Verdicts {
  readonly table: string;
  readonly live: string;
  readonly simulated: string;
  readonly explained: string;
}

async function verdictsOn(
  request: PolicyTest['request'],
  world: RandomPolicy,
  alsoExplain: boolean,
): Promise<Verdicts> {
  const { decided } = runPolicyTest({ name: 'a', request, expect: { decision: 'allow' } }, world.policy, asNamedPerson);
  const decision = decideLive(request, world);
  const { said, policy } = decision;
  const again = decideUnderPolicy(decision, policy);
  const isAsking = said.rule_id === 'approval.required';
  const quorum = 'undecidable' in again ? again.undecidable : (again.quorum ?? '');
  const live = isAsking ? `approval ${said.rule_id} ${quorum}` : `${said.decision} ${said.rule_id} `;
  return {
    table: `${decided.decision} ${decided.rule} ${decided.quorum ?? ''}`,
    live,
    simulated: compareDecision(decision, policy) === null ? live : 'a flip',
    explained: alsoExplain ? await explained(decision, live) : live,
  };
}

/** The explanation must name the check that decided, and why conditions failed. */
async function explained(decision: RecordedDecision, live: string): Promise<string> {
  const { checks, errors } = await explain(decision);
  const { rule_id, decision: said } = decision.said;
  const decided = checks.filter(({ verdict }) => verdict === 'decided').map((check) => check.rule_id);
  const isNamed = said === 'allow' ? decided.length === 0 : decided.length === 1 && decided[0] === rule_id;
  const hasCause = (rule_id === 'condition.error') === errors.length > 0;
  return isNamed && hasCause ? live : `checks ${JSON.stringify(decided)}, errors ${JSON.stringify(errors)}`;
}

/** The decision of a tree of its own. */
function decideLive(request: PolicyTest['request'], world: RandomPolicy): RecordedDecision {
  const tree = new Tree(ROOT);
  const fold = new DecisionFold(ROOT);
  const found: RecordedDecision[] = [];
  const time = `${(request.time ?? '').slice(0, -1)}.000Z`;
  const send = (recorded: RecordedInput, materials: readonly Artifact[]): Decision => {
    const decision = tree.decide({ recorded, materials });
    for (const { entry, text } of decision.entries) {
      const place = { log_index: entry.seq, tree_id: ROOT, seq: entry.seq, type: entry.type, text };
      const taken = fold.take(place, entry.type === 'input' ? materials : []);
      if (taken !== null) found.push(taken);
    }
    return decision;
  };
  send({ ...opening(request, world), time }, [
    ...world.artifacts.slice(0, 3),
    world.machines,
    ...world.artifacts.slice(3),
  ]);
  send({ ...starting(request, tree.policy), time }, []);
  const bytes = Buffer.from(JSON.stringify(proposalOf(request)));
  const payload: Artifact = { kind: 'raw_payload', case_id: tree.run(AGENT)?.context.case_id ?? null, bytes };
  const common = { run_id: AGENT, seen: null, tokens: null, overlay: null } as const;
  if (tree.isLive(AGENT)) {
    send({ kind: 'proposal', ...common, payload: artifactRef(payload), input_id: 'p', time }, [payload]);
    const wanted = findFactsRequest(tree, AGENT);
    if (wanted !== null) send(factsOf(request, wanted, tree, time), []);
  }
  const decision = found.findLast(({ facts }) => facts.kind === 'step') ?? found.at(-1);
  if (decision === undefined) throw new Error('nothing was decided');
  return decision;
}

function opening(
  { case: case_id = 'case-test', scope = {} }: PolicyTest['request'],
  { artifacts, machines }: RandomPolicy,
) {
  const [lanes, roles, actions, conditions, counters] = artifacts.map((artifact) => {
    const ref = artifactRef(artifact);
    return { git_sha: 'a'.repeat(40), sha256: ref.hash_sha256, source: 'manifest' as const, artifact: ref };
  });
  return {
    kind: 'open',
    run_id: ROOT,
    input_id: 'o',
    correlation_id: 'cor_test',
    case_id,
    taxonomy_versions: null,
    scope: Object.fromEntries(Object.entries(scope).map(([name, value]) => [name, toRecordedScopeValue(value)])),
    policies: { lanes, roles, actions, conditions, counters } as never,
    machines: artifactRef(machines),
  } as const;
}

function starting({ actor = 'agent', person = actor, role, lane }: PolicyTest['request'], policy: Policy | null) {
  if (policy === null) throw new Error('the tree is not open');
  return {
    kind: 'start_agent',
    run_id: ROOT,
    input_id: 's',
    actor: { actor_type: 'agent', actor_id: actor },
    person: asNamedPerson({ actor, person }, policy),
    role_id: role,
    lane_id: lane,
    exposure: 'detailed',
    link: 'attached',
    idle_ms: null,
    budget: null,
    overlay: null,
  } as const;
}

const proposalOf = ({ action, args = {} }: PolicyTest['request']) => ({
  schema_version: '1.0.0',
  id: '00000000-0000-4000-8000-000000000009',
  reasoning: 'A test.',
  action,
  args,
});

/** What an engine gathers: the counters come from its own book, after steps that have used so much. */
function factsOf(request: PolicyTest['request'], wanted: GatherRequest, tree: Tree, time: string): RecordedInput {
  const { files = {}, decisions = {} } = request;
  const facts: SandboxFacts = {
    paths: wanted.paths.map((path) => pathFact(path, files)),
    usage: wanted.usage
      ? { bytes: Object.values(files).reduce((sum, size) => sum + size, 0), files: Object.keys(files).length }
      : null,
  };
  const answers = (wanted.decisions ?? []).map(({ point: { name }, body }) => ({
    ...{ name, answer: decisions[name] ?? ('permit' as const), request_hash: sha256(body), cached: false },
  }));
  const input = {
    ...({ kind: 'facts', run_id: AGENT, input_id: 'f', facts } as const),
    ...(answers.length === 0 ? {} : { decisions: answers }),
  };
  const submission = withCounters(
    bookWith(request, wanted, time),
    tree,
    { input, materials: [], rememberInputId: false },
    time,
  );
  return { ...submission.input, time } as RecordedInput;
}

function pathFact(path: string, files: Readonly<Record<string, number>>): PathFact {
  const place = { inode: '0', mtime_ns: '0' };
  if (files[path] !== undefined) return { status: 'file', bytes: files[path], ...place };
  const folders = Object.keys(files).map((file) => file.slice(0, file.lastIndexOf('/')));
  return [...folders, '/sandbox'].includes(path) ? { status: 'directory', ...place } : { status: 'absent' };
}

/** A book in which an earlier step has used what the request says. */
function bookWith(
  { counters: used = {} }: PolicyTest['request'],
  { counters = [] }: GatherRequest,
  time: string,
): CounterBook {
  const book = new CounterBook(true);
  const facts = counters.map(({ name, key }) => ({ name, key, used: 0, since: null, adds: used[name] ?? 0 }));
  if (facts.length === 0) return book;
  const input = {
    kind: 'facts',
    run_id: 'run_before.1',
    input_id: 'b',
    time,
    facts: { paths: [], usage: null },
    counters: facts,
  };
  book.apply({ type: 'input', tree_id: 'run_before', seq: 1, prev: '', body: input } as unknown as Entry);
  return book;
}

// Random requests under random policies: how often two ways to decide one proposal differ.

export interface Comparison {
  /** The first policy is made from this seed, each next one from the next. */
  readonly seed: number;
  readonly policies: number;
  /** Requests under each policy. */
  readonly requests: number;
  /** Every nth request is explained too: an explanation decides under many edits of the policy. */
  readonly explainedEvery: number;
  /** After each policy. */
  readonly onPolicy?: (differences: number) => void;
}

export interface Difference {
  readonly seed: number;
  /** The index of the request under the policy of this seed. */
  readonly index: number;
  readonly verdicts: Verdicts;
}

export interface Compared {
  readonly differences: readonly Difference[];
  /** How often each decision and rule was reached live. */
  readonly decisions: ReadonlyMap<string, number>;
}

export async function compareWays({
  seed: first,
  policies,
  requests,
  explainedEvery,
  onPolicy,
}: Comparison): Promise<Compared> {
  const differences: Difference[] = [];
  const decisions = new Map<string, number>();
  for (let seed = first; seed < first + policies; seed += 1) {
    const chance = random(seed);
    const world = randomPolicy(chance);
    for (let index = 0; index < requests; index += 1) {
      const verdicts = await verdictsOn(randomRequest(chance), world, index % explainedEvery === 0);
      const { table, live, simulated, explained } = verdicts;
      if (table !== live || simulated !== live || explained !== live) differences.push({ seed, index, verdicts });
      const rule = live.split(' ').slice(0, 2).join(' ');
      decisions.set(rule, (decisions.get(rule) ?? 0) + 1);
    }
    onPolicy?.(differences.length);
  }
  return { differences, decisions };
}
