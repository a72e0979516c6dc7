// Draws careless policies: one to three forms of carelessness of the corpus, in a policy whose lanes and roles have
// other names and another order, with comments between its lines.

import type { PolicyFile } from '../../../src/core/contract/policy/pins.js';
import type { LintSeverity } from '../../../src/home/policy/policy-linter.js';
import type { LintRule } from '../../../src/features/policy-lint/lint-rules.js';
import { CARELESS, type Careless } from '../../features/policy-lint/careless-policies.js';
import { edited, lineOf, NAMES, shipped, type Texts } from '../../features/policy-lint/edited-policy.js';
import type { Random } from '../../simulation/random.js';

export interface Expected {
  readonly what: string;
  readonly rule: LintRule;
  readonly file: PolicyFile;
  readonly line: number;
  readonly severity: LintSeverity;
}

export interface DrawnPolicy {
  readonly texts: Texts;
  /** The findings that the linter must report. */
  readonly expected: readonly Expected[];
}

const ACTIONS = ['actions.yaml', 'actions.service.yaml'] as const;
/** The start of an item of the lists, with the comments above it. */
const ITEM = /^(?=(?: {2}#.*\n)* {2}- (?:lane_id|role_id|action):)/mu;
const COMMENTS = ['# Asked for by the partners.', '    # - nothing', '', '# lanes: [EXPORT_CASE_DATA]'] as const;

/** @param first the form that the policy has in any case; null: it has none */
export function drawPolicy(random: Random, first: Careless | null): DrawnPolicy {
  let texts = reordered(shipped(random.pick(ACTIONS)), random);
  // Its edits may have no place in the policy for services.
  if (first !== null && !isPossible(texts, first)) texts = reordered(shipped(), random);
  const chosen: Careless[] = [];
  const more = first === null ? 0 : random.below(3);
  for (const careless of [...(first === null ? [] : [first]), ...picked(random, more)]) {
    if (!isPossible(texts, careless) || chosen.some((other) => interferes(other, careless))) continue;
    texts = careless.edits.reduce(edited, texts);
    chosen.push(careless);
  }
  const expected = chosen.map(({ what, finds }) => {
    const { rule, file, severity = 'error' } = finds;
    return { what, rule, file, severity, line: lineOf(texts, finds) };
  });
  return commented(renamed({ texts, expected }, random), random);
}

const picked = (random: Random, count: number): readonly Careless[] =>
  Array.from({ length: count }, () => random.pick(CARELESS));

function isPossible(texts: Texts, { edits, finds }: Careless): boolean {
  // The policy for services lists the action that the shipped one does not.
  if (finds.rule === 'approval.unlisted_action' && texts.actions.includes('- action: CALL_TOOL')) return false;
  try {
    edits.reduce(edited, texts);
    return true;
  } catch {
    return false;
  }
}

/** The findings of one form on a lane, role or action may change once another form has changed it. */
const interferes = (one: Careless, other: Careless): boolean =>
  subjectsOf(one).some((subject) => subjectsOf(other).includes(subject));

const subjectsOf = ({ edits, finds }: Careless): readonly string[] => [
  ...edits.map((edit) => edit.in ?? edit.file),
  finds.in ?? finds.at,
  familyOf(finds.rule),
];

/** Which class may have a role depends on what the lane of the role checks. */
const familyOf = (rule: LintRule): string =>
  rule === 'lane.session_checks' || rule.startsWith('role.') ? 'role' : rule.replace(/^(export|promotion)\..*$/u, '$1');

function reordered(texts: Texts, random: Random): Texts {
  const inOrder = (text: string): string => {
    const begin = text.search(ITEM);
    // The last item ends where the next key begins.
    const end = begin + (/^(?:\n#|[a-z])/mu.exec(text.slice(begin))?.index ?? text.length - begin);
    const items = text.slice(begin, end).split(ITEM);
    return text.slice(0, begin) + shuffled(items, random).map(withEnd).join('') + text.slice(end);
  };
  return mapped(texts, inOrder);
}

const withEnd = (item: string): string => (item.endsWith('\n') ? item : `${item}\n`);

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  const list = [...items];
  for (let at = list.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1);
    [list[at], list[other]] = [list[other] as T, list[at] as T];
  }
  return list;
}

/**
 * Renames lanes and roles consistently in all files. The platform's own role keeps its name. A role of an agent keeps
 * that word: without it, a person who uses these tools cannot be distinguished from a model.
 */
function renamed({ texts, expected }: DrawnPolicy, random: Random): DrawnPolicy {
  let all = texts;
  const names = [...`${texts.lanes}${texts.roles}`.matchAll(/(?:lane|role)_id: ([A-Z_]+)$/gmu)].map(
    ([, name = '']) => name,
  );
  for (const name of names.filter((one) => one !== 'SYSTEM' && random.chance(0.5))) {
    const [desk, number] = [random.pick(['FIRM', 'DESK', 'UNIT']), random.below(1_000)];
    const other = `${desk}_${number}_${names.indexOf(name)}${name.endsWith('_AGENT') ? '_AGENT' : ''}`;
    all = mapped(all, (text) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'gu'), other));
  }
  return { texts: all, expected };
}

/** Comment lines, between any two lines. */
function commented({ texts, expected }: DrawnPolicy, random: Random): DrawnPolicy {
  const lines = Object.fromEntries(NAMES.map((name) => [name, texts[name].split('\n')])) as Record<
    PolicyFile,
    string[]
  >;
  let moved = expected;
  for (let count = random.below(8); count > 0; count -= 1) {
    const name = random.pick(NAMES);
    const at = random.below(lines[name].length);
    lines[name].splice(at, 0, random.pick(COMMENTS));
    moved = moved.map((one) => (one.file === name && one.line > at ? { ...one, line: one.line + 1 } : one));
  }
  return { texts: mapped(texts, (_text, name) => lines[name].join('\n')), expected: moved };
}

const mapped = (texts: Texts, change: (text: string, name: PolicyFile) => string): Texts => ({
  lanes: change(texts.lanes, 'lanes'),
  roles: change(texts.roles, 'roles'),
  actions: change(texts.actions, 'actions'),
});
