// Explains one recorded decision: its checks, and the single policy changes that would reverse it. Each change is found
// by editing the policy and deciding again.

import { EXPORT_TOOL } from '../../../machines/high-risk-run.js';
import { installedFeatures } from '../../kernel/tree-feature.js';
import type { Json, JsonObject } from '../../core/contract/json.js';
import { OPTIONAL_FILES, type PolicyFile } from '../../core/contract/policy/pins.js';
import { readPolicyYaml } from '../../core/policy/files/read-policy-file.js';
import type { Policy } from '../../core/policy/policy.js';
import { checksOf, type DecisionCheck } from './decision-checks.js';
import { decidedConditions, decidedErrors, decidingElements } from './deciding-elements.js';
import { decideUnderPolicy } from './decide-under-policy.js';
import { elementPlaces, type PolicyElement, type PointerPlace } from './policy-elements.js';
import type { MediatedAct, PolicyAnswer, RecordedDecision } from './recorded-decision.js';
import { editsOf, type EditScope, type PolicyEdit, adjustableLimitsOf, limitEdits } from './policy-edits.js';

/** A single change of the policy that changes the decision. */
export interface PolicyChange {
  readonly text: string;
  /** The answer after the change. Without gathered facts it is undecidable: only the failed check would pass. */
  readonly gives: PolicyAnswer;
}

export interface Explanation {
  readonly decision: RecordedDecision;
  readonly checks: readonly DecisionCheck[];
  /** The condition that denied, or those that asked for the approval. */
  readonly conditions: readonly DecidingCondition[];
  /** Why conditions could not be evaluated, one text for each; empty unless that made the decision. */
  readonly errors: readonly string[];
  /** The parts of the YAML files that made the decision. */
  readonly places: readonly ElementPlace[];
  /** The smallest change first; empty if no single change reverses the decision. */
  readonly changes: readonly PolicyChange[];
}

/** A condition of the policy, and where it is. */
export interface DecidingCondition {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

/** A part of a YAML file of policy. */
export interface ElementPlace {
  /** What the part is, such as `tool payments.refund`. */
  readonly name: string;
  readonly lane_id: string | null;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The text of the line, without the space around it. */
  readonly text: string;
}

/** Awaits `pause` between the tested policies, so that a service can process other requests. */
export async function explain(
  decision: RecordedDecision,
  pause: () => Promise<void> | undefined = () => undefined,
): Promise<Explanation> {
  const changes = await findChanges(decision, pause);
  return {
    decision,
    checks: checksOf(decision, decision.policy),
    conditions: decidingConditions(decision),
    errors: decidedErrors(decision),
    places: placesOf(decision),
    changes,
  };
}

function decidingConditions(decision: RecordedDecision): readonly DecidingCondition[] {
  const ids = decidedConditions(decision);
  const all = decision.policy.conditions?.all ?? [];
  return all
    .filter(({ id }) => ids.includes(id))
    .map(({ id, line, column, text }) => ({ id, file: OPTIONAL_FILES.conditions, line, column, text }));
}

/** The parts of the YAML files that made the decision. Conditions are in a file of their own. */
function placesOf(decision: RecordedDecision): readonly ElementPlace[] {
  const { policy, said } = decision;
  const placeOf = elementPlaces(policy);
  const limit = said.decision === 'deny' ? limitPlace(said.rule_id ?? '') : null;
  const all = [
    ...decidingElements(decision).flatMap((element) => {
      const place = placeOf(element);
      return place === null ? [] : [{ ...nameOf(element), place }];
    }),
    ...(limit === null ? [] : [{ name: limit.pointer.slice(1).replaceAll('/', '.'), lane_id: null, place: limit }]),
  ];
  const readLine = lineReader(policy);
  return all.map(({ place, ...named }) => ({ ...named, file: `${place.file}.yaml`, ...readLine(place) }));
}

const nameOf = ({ kind, name, lane_id }: PolicyElement): Pick<ElementPlace, 'name' | 'lane_id'> => ({
  name: kind === 'grant' || kind === 'rule' ? name : `${kind.replace('_', ' ')} ${name}`,
  lane_id: kind === 'lane' ? null : lane_id,
});

/** The limits that deny by themselves, in the actions file. */
function limitPlace(rule_id: string): PointerPlace | null {
  const [family = '', name = ''] = rule_id.split('.');
  const pointers: Readonly<Record<string, string>> = {
    quota: `/sandbox/${name}_max`,
    budget: `/budgets/${name}`,
    payload: `/limits/payload_${name}`,
    args: `/limits/${name}`,
    sandbox: `/sandbox/${name}_max`,
  };
  const isLimit = family === 'quota' || family === 'budget' || LIMIT_RULES.includes(rule_id);
  const pointer = Object.hasOwn(pointers, family) ? pointers[family] : undefined;
  return isLimit && pointer !== undefined ? { file: 'actions', pointer } : null;
}

const LIMIT_RULES: readonly string[] = ['payload.bytes_max', 'args.content_bytes_max', 'sandbox.depth'];

/** Reads each file at most once. */
function lineReader({ files }: Policy): (place: PointerPlace) => Pick<ElementPlace, 'line' | 'text'> {
  const read = new Map<PolicyFile, { readonly lines: readonly string[]; lineOf(pointer: string): number }>();
  return ({ file, pointer }) => {
    let known = read.get(file);
    if (known === undefined) {
      const { document } = readPolicyYaml(files[file]);
      const lines = Buffer.from(files[file]).toString('utf8').split('\n');
      known = { lines, lineOf: document === null ? () => 1 : document.lineOf };
      read.set(file, known);
    }
    const line = known.lineOf(pointer);
    return { line, text: (known.lines[line - 1] ?? '').trim() };
  };
}

async function findChanges(
  decision: RecordedDecision,
  pause: () => Promise<void> | undefined,
): Promise<readonly PolicyChange[]> {
  const { policy, said } = decision;
  const answers = new Map<Policy, PolicyAnswer>();
  const flips = (edited: Policy): boolean => {
    const answer = decideUnderPolicy(decision, edited);
    answers.set(edited, answer);
    if ('undecidable' in answer) return said.decision === 'deny' && answer.undecidable === 'facts.not_gathered';
    return answer.decision !== said.decision;
  };
  const edits: PolicyEdit[] = [];
  for (const edit of editsOf(policy, editScopeOf(decision))) {
    if (flips(edit.policy)) edits.push(edit);
    await pause();
  }
  for (const limit of adjustableLimitsOf(policy)) {
    edits.push(...limitEdits(limit, flips));
    await pause();
  }
  const changes = edits.map(({ text, policy: edited }) => ({
    text,
    gives: answers.get(edited) ?? decideUnderPolicy(decision, edited),
  }));
  // Changes with a verdict precede changes after which the verdict depends on facts that were not gathered.
  return changes.toSorted((a, b) => Number('undecidable' in a.gives) - Number('undecidable' in b.gives));
}

/** The names of the role, lanes, action, tools and tables of a decision. */
function editScopeOf({ facts, role_id, lane_id, action, policy }: RecordedDecision): EditScope {
  const base = { role_id, lane_ids: lane_id === null ? [] : [lane_id], action, tools: [], tables: [], endings: {} };
  switch (facts.kind) {
    case 'orchestrator':
    case 'agent':
    case 'ballot':
      return base;
    case 'run':
      return editScopeOfRun(base, facts.event.act.action, facts.event.act.args);
    case 'approval':
      return editScopeOfRun(base, facts.of.event.act.action, facts.of.event.act.args);
    case 'retry':
      return editScopeOfAct(base, facts.act, policy);
    case 'step':
      return facts.act === null ? base : editScopeOfAct(base, facts.act, policy);
    case 'write': {
      const { of } = facts;
      if (of.kind === 'run') return editScopeOfRun(base, of.event.act.action, of.event.act.args);
      return of.act === null ? base : editScopeOfAct(base, of.act, policy);
    }
  }
}

function editScopeOfAct(base: EditScope, { action, args, agent }: MediatedAct, policy: Policy): EditScope {
  const definition = policy.catalogue.action(action);
  const tools = [definition?.tool ?? null, args['tool']].filter((name): name is string => typeof name === 'string');
  const tables = [definition?.write?.table, definition?.read, args['target']].filter(
    (name): name is string => typeof name === 'string',
  );
  const own = policy.actions.get(action)?.lane;
  const lane_ids = [own ?? agent.lane_id, agent.lane_id].filter((lane) => lane !== null);
  const endings = Object.fromEntries((definition?.paths ?? []).flatMap((name) => endingOf(name, args[name])));
  return { ...base, action, lane_ids, tools: unique(tools), tables: unique(tables), endings };
}

function editScopeOfRun(base: EditScope, action: string, args: JsonObject): EditScope {
  const { target } = args;
  const tools = base.action === 'export' ? [EXPORT_TOOL] : startedTools(action);
  return { ...base, tools, tables: typeof target === 'string' ? [target] : [] };
}

function endingOf(name: string, path: Json | undefined): readonly (readonly [string, string])[] {
  const ending = typeof path === 'string' ? /\.[A-Za-z0-9]{1,16}$/.exec(path)?.[0] : undefined;
  return ending === undefined ? [] : [[name, ending]];
}

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)];

/** The tools that a lane must list for an action that a feature starts itself. */
const startedTools = (action: string): readonly string[] =>
  installedFeatures().flatMap((feature) => feature.startedTools?.[action] ?? []);
