// Agent runs with a key of their caller. Such a run is remote: it outlives the process, and a later one attaches to it
// again by the key. Its id is derived from the key, so that two processes that start it at once begin one run, in every
// store.

import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { InvariantError, RunError, usageError } from '../../core/errors.js';
import type { KnownRun, Tree } from '../../kernel/tree.js';
import type { LedgerReader } from '../ledger/ledger-reader.js';
import type { AgentOptions, AgentRun, RunEnding } from './agent-run.js';
import { createEndedHandle, type Agents } from './agents.js';
import { recordConflict } from './bound-inputs.js';
import { isInCase } from './choose-case.js';
import {
  AGENT_DEFAULTS,
  asPerson,
  type SharingAgentOptions,
  narrowExposure,
  requireOneOf,
  validateBudget,
  validateField,
  validateIdle,
  validateScope,
  validateTaxonomy,
  createScopeNotes,
  createStartPrompts,
} from './caller-input.js';
import { artifactRef } from '../../core/contract/artifact-ref.js';
import type { OpenInput, StartAgentInput } from '../../core/contract/run/input.js';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { Identifier } from '../../core/contract/shapes.js';
import type { Policy } from '../../core/policy/policy.js';

interface KeyedRunsParts {
  readonly agents: Agents;
  readonly engine: Pick<TreeEngine, 'peek'>;
  readonly ledger: Pick<LedgerReader, 'run' | 'entries'>;
}

interface BoundRunsParts extends KeyedRunsParts {
  readonly engine: Pick<TreeEngine, 'peek' | 'submit'>;
}

/**
 * Starts the run of a key, or attaches to it.
 * @throws RunError RUN_KEY_CONFLICT if the run of the key has another actor, person, role, lane or case; UsageError
 */
export async function startKeyedRun(
  parts: KeyedRunsParts,
  options: SharingAgentOptions & { key: string },
): Promise<AgentRun> {
  const { agents, engine } = parts;
  if (options.link === 'attached') throw usageError('key: the run of a key is remote, because it outlives its caller');
  const root = keyedRoot(options.key);
  const known = await engine.peek(root);
  if (known !== null) return { ...(await attach(parts, known, options)), resumed: true };
  const started = await agents.start({ idleMs: IDLE_MS_DEFAULT, ...options, link: 'remote' }, root);
  // Another call or another worker may have begun the run meanwhile, for another agent.
  const run = await agents.findAny(started.run_id);
  if (run !== null) await checkOwner(parts, run.context, options);
  if (run === null || (await agents.find(started.run_id)) !== null) return { ...started, resumed: false };
  // It has ended already. The end is reported only to the call that has begun the run, so this one reads it.
  return { ...createEndedRun(parts, run.context, await findEnding(parts, run)), resumed: false };
}

/**
 * As `startKeyedRun`. The key is bound to every option that is given; a conflict is recorded in the run of the key.
 * @throws RunError RUN_KEY_CONFLICT also if the run of the key was started with another value of an option
 */
export async function startBoundRun(parts: BoundRunsParts, options: AgentOptions & { key: string }): Promise<AgentRun> {
  const run = await startKeyedRun(parts, options);
  const start = await findStart(parts, keyedRoot(options.key));
  const difference = start === null ? null : findStartDifference(options, start);
  if (difference === null) return run;
  // A tree without an agent run has no place for the record of a conflict, and nothing can happen in it.
  if (start?.agent != null) {
    const bytes = Buffer.from(difference.text);
    const inputId = `start:${options.key}`;
    await recordConflict(parts.engine, { run_id: run.run_id, bytes }, { bound: null, inputId });
  }
  throw keyConflict(difference.names);
}

/**
 * The run of a key, without beginning one.
 * @returns null if the key has no run
 * @throws like `startKeyedRun`
 */
export async function findKeyedRun(parts: KeyedRunsParts, options: KeyedRunOwner): Promise<FoundRun | null> {
  const tree = await parts.engine.peek(keyedRoot(options.key));
  return tree === null ? null : toFoundRun(await attach(parts, tree, options));
}

/** The key of a run, and who may use it. */
export type KeyedRunOwner = Pick<AgentOptions, 'actor' | 'person' | 'role' | 'lane' | 'case'> & {
  readonly key: string;
};

/** A run and its end; null while it has not ended. */
export interface FoundRun {
  readonly run_id: string;
  readonly ending: RunEnding | null;
}

export const toFoundRun = async ({ run_id, finished }: AgentRun): Promise<FoundRun> => ({
  run_id,
  ending: await Promise.race([finished, Promise.resolve(null)]),
});

/** The id that the agent run of a key has, whether it exists or not. @throws UsageError */
export const runIdOfKey = (key: string): string => `${keyedRoot(key)}.1`;

/** Seven days: a run that waits for a vote is silent for long. */
const IDLE_MS_DEFAULT = 604_800_000;
const KEY = /^[\x21-\x7e]{1,128}$/;

/** The id of the run tree of a key. @throws UsageError */
export function keyedRoot(key: string): string {
  if (typeof key === 'string' && KEY.test(key)) return `run_${sha256(canonicalJson(['run of key', key])).slice(0, 32)}`;
  throw usageError('key: 1 to 128 printable ASCII characters without spaces');
}

async function attach(parts: KeyedRunsParts, tree: Tree, options: AgentOptions): Promise<AgentRun> {
  const run = tree.runs.find(({ context }) => context.run_kind === 'agent');
  if (run === undefined) return attachToDeniedRoot(tree, options);
  await checkOwner(parts, run.context, options);
  const live = await parts.agents.find(run.context.run_id);
  return live ?? createEndedRun(parts, run.context, await findEnding(parts, run));
}

/** Policy denied the orchestrator run, so there is no agent run. */
function attachToDeniedRoot(tree: Tree, options: AgentOptions): AgentRun {
  const root = tree.run(tree.tree_id);
  if (root === null || !tree.hasEnded) throw new InvariantError(`run tree ${tree.tree_id} has no agent run`);
  if (!isInCase(root.context, options.case)) throw keyConflict();
  return createEndedHandle(root.context, tree.ending);
}

async function checkOwner(parts: KeyedRunsParts, run: RunContext, options: AgentOptions): Promise<void> {
  const { actor, role, lane, person = actor } = { ...AGENT_DEFAULTS, ...options };
  const isOwner =
    run.actor.actor_id === actor && run.role_id === role && run.lane_id === lane && isInCase(run, options.case);
  if (!isOwner) throw keyConflict();
  // Requests of the run belong to the person that began it: another one could approve its own agent's requests.
  const recorded = (await findStart(parts, run.root_run_id))?.agent?.person;
  if (recorded !== undefined && recorded.canonical_id !== asPerson(person).canonical_id) throw keyConflict();
}

/** What the tree of a key was started with; null while the ledger has nothing of it. */
async function findStart({ engine, ledger }: KeyedRunsParts, root: string): Promise<RecordedStart | null> {
  let open: RecordedStart['open'] | null = null;
  let agent: RecordedStart['agent'] = null;
  for await (const { type, body } of ledger.entries(root)) {
    if (type !== 'input') continue;
    if (body.kind === 'open') open = body;
    if (body.kind !== 'start_agent') continue;
    agent = body;
    break;
  }
  return open === null ? null : { open, agent, policy: (await engine.peek(root))?.policy ?? null };
}

const keyConflict = (names: readonly string[] = ['actor', 'person', 'role', 'lane or case']): RunError =>
  new RunError({
    code: 'RUN_KEY_CONFLICT',
    message: `the run of this key was started with another ${names.join(', ')}: use another key`,
  });

async function findEnding({ ledger }: KeyedRunsParts, { context: { run_id } }: KnownRun): Promise<RunEnding> {
  const record = await ledger.run(run_id);
  if (record === null || record.status === 'created' || record.status === 'running') {
    throw new InvariantError(`run ${run_id} has ended, and its record says otherwise`);
  }
  const { status: state, outcome = state } = record;
  const reason = outcome.startsWith(`${state}:`) ? outcome.slice(state.length + 1) : outcome;
  return { run_id, state, reason };
}

/** A repeated request still gets its recorded response. */
const createEndedRun = ({ agents }: KeyedRunsParts, context: RunContext, ending: RunEnding): AgentRun =>
  createEndedHandle(context, ending, {
    submit: (raw, submitOptions) => agents.submit(context.run_id, raw, submitOptions),
    respond: (raw, submitOptions) => agents.respond(context.run_id, raw, submitOptions),
  });

// The key of an agent run is bound to what the run was started with: each option that a repeated start gives must be
// the recorded one. Options that it does not give are those of the run.

/** What the ledger has of a start; `agent` is null if policy denied the tree. */
interface RecordedStart {
  readonly open: OpenInput;
  readonly agent: StartAgentInput | null;
  readonly policy: Policy | null;
}

/** Members of a start, as the ledger has them and as a repeated start would have them. */
interface ComparedOption {
  readonly recorded: unknown;
  readonly given: unknown;
}

type Compare<Name extends keyof AgentOptions> = (
  given: Exclude<AgentOptions[Name], undefined>,
  start: RecordedStart,
) => ComparedOption | null;

const agentMember = (start: RecordedStart, name: 'exposure' | 'idle_ms' | 'budget', given: unknown) =>
  start.agent === null ? null : { recorded: start.agent[name], given };

/** The owner of the run: `keyed-runs.ts` compares it, with its defaults. */
const OF_OWNER = null;
/** The key itself, or what no entry records and no decision depends on. */
const UNRECORDED = null;

/** Each option is here: a new one does not compile without its line. */
const COMPARED: { readonly [Name in keyof Required<AgentOptions>]: Compare<Name> | null } = {
  actor: OF_OWNER,
  person: OF_OWNER,
  role: OF_OWNER,
  lane: OF_OWNER,
  case: OF_OWNER,
  key: UNRECORDED,
  link: UNRECORDED,
  trace: UNRECORDED,
  scope: (given, { open }) => ({
    recorded: open.scope,
    given: createScopeNotes(validateScope(given), open.case_id).scope,
  }),
  correlation: (given, { open }) => ({
    recorded: open.correlation_id,
    given: validateField('correlation', Identifier, given),
  }),
  taxonomy: (given, { open }) => ({ recorded: open.taxonomy_versions, given: validateTaxonomy(given) }),
  // What policy narrows to the recorded exposure starts the same.
  exposure(given, start) {
    const known = requireOneOf('exposure', EXPOSURES, given);
    return agentMember(start, 'exposure', narrowExposure(start.policy?.exposure ?? known, known));
  },
  idleMs: (given, start) => agentMember(start, 'idle_ms', validateIdle(given)),
  budget: (given, start) => agentMember(start, 'budget', validateBudget(given)),
  prompts: (given, { open, agent }) =>
    agent === null
      ? null
      : { recorded: agent.given ?? [], given: createStartPrompts(given, open.case_id).prompts.map(artifactRef) },
};

/** How a repeated start differs. */
interface StartDifference {
  /** The options, sorted. */
  readonly names: readonly string[];
  /** The canonical text of their given values, with prompts as references. */
  readonly text: string;
}

/**
 * @returns null if the start gives nothing that differs from what is recorded
 * @throws UsageError for an invalid option
 */
function findStartDifference(options: AgentOptions, start: RecordedStart): StartDifference | null {
  const given = options as Readonly<Record<string, unknown>>;
  const differing = Object.entries(COMPARED).flatMap(([name, compare]): readonly (readonly [string, unknown])[] => {
    if (compare === null || given[name] === undefined) return [];
    const found = (compare as Compare<keyof AgentOptions>)(given[name] as never, start);
    if (found === null || canonicalJson(found.recorded) === canonicalJson(found.given)) return [];
    return [[name, name === 'scope' ? sha256(canonicalJson(found.given)) : found.given]];
  });
  if (differing.length === 0) return null;
  return { names: differing.map(([name]) => name).toSorted(), text: canonicalJson(Object.fromEntries(differing)) };
}
