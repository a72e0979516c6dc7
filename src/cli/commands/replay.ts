import { RunError } from '../../errors.js';
import { replay as replayLedger, type ReplayReport } from '../../replay/replay.js';
import type { Command } from '../command.js';
import { isFileName, KEY_OPTION, withEvidence } from '../evidence-file.js';
import { withLedger } from '../folders.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** How much of an entry is shown around the first character in which it differs. */
const SHOWN_CHARS = 320;
const BEFORE_CHARS = 120;

/** `turnpike replay`: would the machines have written this ledger? */
export const replay: Command = {
  name: 'replay',
  summary: 'Fold the ledger through the machines; print what was checked, or the first difference',
  operands: { usage: '[RUN_ID|FILE]', min: 0, max: 1 },
  options: [KEY_OPTION],
  notes: [
    'Needs nothing but the ledger and its artifacts. With RUN_ID, the run tree that the run belongs to. With FILE, the',
    'ledger in what `ledger export` wrote.',
    'Exits 1 at a difference.',
  ],
  async run(args, io) {
    const [operand] = args.operands;
    const run_id = operand === undefined || isFileName(operand) ? undefined : operand;
    const report =
      operand === undefined || run_id !== undefined
        ? await withLedger(args, io, ({ reader }) => reader.replay(run_id))
        : await withEvidence(operand, args, io, (bundle) => replayLedger(bundle));
    if (run_id !== undefined && report.trees === 0) {
      throw new RunError({ code: 'RUN_UNKNOWN', message: `this ledger has no run ${run_id}` });
    }
    await io.stdout.write(args.flag('json') ? jsonLine(report) : textOf(report));
    return report.ok ? 0 : 1;
  },
};

function textOf(report: ReplayReport): string {
  const { trees, entries, inputs, steps, responses, difference } = report;
  const counts = [
    counted(trees, 'run tree'),
    `${entries} entries`,
    counted(inputs, 'input'),
    counted(steps, 'step'),
    counted(responses, 'response'),
  ].join(', ');
  if (difference === null) {
    const others = report.other_machines;
    const note =
      others === 0 ? '' : `note: ${counted(others, 'run tree')} recorded by another version of the machines\n`;
    return `ok: ${counts}: every state, verdict and response came out as recorded\n${note}`;
  }
  const { tree_id, seq, rule, log_index, expected, found } = difference;
  const place = log_index === null ? `after the last entry` : `entry ${log_index}`;
  const from = firstDifference(expected ?? '', found ?? '');
  return [
    `${place} (${tree_id} seq ${seq}): ${rule}`,
    `  expected: ${excerpt(expected, from)}`,
    `  found:    ${excerpt(found, from)}`,
    `before it: ${counts}, all as recorded`,
  ]
    .map((line) => `${escaped(line)}\n`)
    .join('');
}

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Both texts from the same place on, so that they can be compared by eye. */
function excerpt(text: string | null, difference: number): string {
  if (text === null) return 'nothing';
  const from = text.length <= SHOWN_CHARS ? 0 : Math.max(0, difference - BEFORE_CHARS);
  const shown = text.slice(from, from + SHOWN_CHARS);
  return `${from > 0 ? '…' : ''}${shown}${from + SHOWN_CHARS < text.length ? '…' : ''}`;
}
