import { nameBoth } from '../../../core/contract/entry-name.js';
import { RunError } from '../../../core/errors.js';
import { readDecisionsAt } from '../decision-fold.js';
import { UNDECIDABLE, type PolicyAnswer, type RecordedDecision } from '../recorded-decision.js';
import { explain, type Explanation } from '../explain.js';
import type { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { ENTRY_NOTES, findLogIndex } from '../../../interfaces/cli/options/entry-name-argument.js';
import { withLedger } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine, createPainter, type Paint } from '../../../interfaces/cli/text/terminal.js';

const CHANGES_SHOWN = 8;

/** `turnpike policy explain`: explains a decision, and which policy changes would reverse it. */
export const policyExplain: CliCommand = {
  name: 'policy explain',
  access: 'read',
  summary: 'Explain a recorded decision: its checks in order, and the smallest policy change that would flip it',
  operands: { usage: 'ENTRY', min: 1, max: 1 },
  options: [],
  notes: [
    ...ENTRY_NOTES,
    'If that entry records no decision, the command explains the decisions on the same input. Each change is a single',
    'edit of the policy that the run tree has pinned; the command has evaluated the decision again with it. Needs no',
    'lock.',
  ],
  async run(args, io) {
    const [text = ''] = args.operands;
    const decisions = await withLedger(args, io, ({ reader }) => findDecisions(reader, text));
    const paint = createPainter(io.colours);
    for (const [i, decision] of decisions.entries()) {
      const each = await explain(decision);
      const own = args.values.json ? jsonLine(toPlainExplanation(each)) : textOf(each, paint);
      await io.stdout.write(i === 0 || args.values.json ? own : `\n${own}`);
    }
    return 0;
  },
};

/** @throws RunError RUN_UNKNOWN if the entry does not exist or records no decision */
async function findDecisions(reader: LedgerReader, text: string): Promise<readonly RecordedDecision[]> {
  const log_index = await findLogIndex(text, reader.folded);
  const tree_id = await findTreeAt(reader, log_index);
  const isMatch = (entry: { readonly log_index: number }): boolean => entry.log_index === log_index;
  const { found, decisions } = await readDecisionsAt(reader.folded, tree_id ?? '', isMatch);
  if (!found) throw new RunError({ code: 'RUN_UNKNOWN', message: 'this ledger has no such entry' });
  if (decisions.length > 0) return decisions;
  throw new RunError({
    code: 'RUN_UNKNOWN',
    message: 'the input of this entry led to no decision',
  });
}

async function findTreeAt(reader: LedgerReader, log_index: number): Promise<string | null> {
  for await (const entry of reader.log(log_index)) return entry.log_index === log_index ? entry.tree_id : null;
  return null;
}

/** For --json: without the policy and the facts, which hold whole payloads. */
const toPlainExplanation = ({ decision, ...found }: Explanation) => {
  const { tree_id, seq, log_index, run_id, actor_id, role_id, lane_id, action, said } = decision;
  return { tree_id, seq, log_index, run_id, actor_id, role_id, lane_id, action, said, ...found };
};

const MARKS = { passed: ['✓', 'green'], decided: ['✗', 'red'], 'not reached': ['·', 'dim'] } as const;

function textOf({ decision, checks, conditions, errors, places, changes }: Explanation, paint: Paint): string {
  const { tree_id, seq, log_index, run_id, actor_id, role_id, lane_id, action, said } = decision;
  const rule = said.rule_id === null ? '' : ` by ${escapeText(said.rule_id)}`;
  const lines = [
    `${escapeText(nameBoth(log_index, tree_id, seq))}: ${paint(said.decision, said.decision === 'allow' ? 'green' : 'yellow')}${rule}`,
    `  ${escapeText(actor_id)} as ${escapeText(role_id)}${lane_id === null ? '' : ` in lane ${escapeText(lane_id)}`}: ${escapeText(action)} (run ${escapeText(run_id)})`,
    ...checks.map(({ name, verdict, rule_id }) => {
      const [mark, colour] = MARKS[verdict];
      return `  ${paint(mark, colour)} ${name}${rule_id === null ? '' : `: ${escapeText(rule_id)}`}${verdict === 'not reached' ? ' (not reached)' : ''}`;
    }),
    ...errors.map(escapeText),
    ...conditions.flatMap(conditionLines),
    ...places.flatMap(placeLines),
    ...changeLines(changes),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** Where the condition is, and its text. */
const conditionLines = ({ id, file, line, column, text }: Explanation['conditions'][number]): readonly string[] => [
  `${file}:${line}:${column} ${id}`,
  ...text.split('\n').map((part) => `  | ${escapeText(part)}`),
];

/** Where the part of the policy is, and its line. */
const placeLines = ({ name, lane_id, file, line, text }: Explanation['places'][number]): readonly string[] => [
  `${file}:${line} ${escapeText(name)}${lane_id === null ? '' : ` of lane ${escapeText(lane_id)}`}`,
  `  | ${escapeText(text.slice(0, LINE_CHARS_MAX))}`,
];
const LINE_CHARS_MAX = 160;

function changeLines(changes: Explanation['changes']): readonly string[] {
  const [smallest, ...others] = changes;
  if (smallest === undefined) return ['no single change of the policy would flip this decision'];
  const shown = others.slice(0, CHANGES_SHOWN);
  const more = others.length - shown.length;
  return [
    `smallest change that would flip this decision: ${lineOf(smallest)}`,
    ...(shown.length === 0 ? [] : ['or one of these:']),
    ...shown.map((change) => `  ${lineOf(change)}`),
    ...(more > 0 ? [`  and ${more} more: --json shows all`] : []),
  ];
}

const lineOf = ({ text, gives }: Explanation['changes'][number]): string => `${escapeText(text)} ${givesText(gives)}`;

const givesText = (gives: PolicyAnswer): string =>
  'undecidable' in gives
    ? `(then open: ${UNDECIDABLE[gives.undecidable]})`
    : `(${gives.decision}${gives.rule_id === null ? '' : `: ${escapeText(gives.rule_id)}`})`;
