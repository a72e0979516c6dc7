import { nameBoth, nameInLedger, nameInTree } from '../../../../core/contract/entry-name.js';
import { RunError } from '../../../../core/errors.js';
import type { LedgerStore } from '../../../../engine/ports/ledger/ledger-store.js';
import {
  replay as replayLedger,
  type UnrecomputedTree,
  type ReplayReport,
  type ReplayVerdict,
} from '../../../../kernel/replay/replay.js';
import type { LedgerState, RunSnapshot } from '../../../../kernel/replay/ledger-state.js';
import { stateAt } from '../../../../kernel/replay/state-at.js';
import { FEATURES } from '../../../../features/declare-features.js';
import {
  defineCommand,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type ExitCode,
  type StateTable,
} from '../../command.js';
import { exitOneIfTampered } from '../../exit-code.js';
import {
  ENTRY_NOTES,
  findLogIndex,
  parseEntryName,
  type EntryName,
  type NamedEntries,
} from '../../options/entry-name-argument.js';
import { rootRunIdOf, isTerminal } from '../../../../core/contract/run/run-context.js';
import { isFileName, KEY_OPTIONS, withEvidenceBundle } from '../../options/evidence-file.js';
import { withLedger } from '../../options/folders.js';
import type { Io } from '../../io.js';
import { archivedNotice } from './ledger-verify-command.js';
import { countText, escapeLines, jsonLine } from '../../text/terminal.js';

/** The number of characters shown around the first difference in an entry. */
const SHOWN_CHARS = 320;
const BEFORE_CHARS = 120;

const EXIT_CODES: Readonly<Record<ReplayVerdict, ExitCode>> = { replayed: 0, differs: 1, by_hash_alone: 4, nothing: 4 };

const OPTIONS = [
  {
    name: 'until',
    value: 'ENTRY',
    help: 'replay only up to this entry, and show the state of every run and session after it',
  },
  { name: 'all', needs: 'until', help: 'with --until: also show the runs that had ended' },
  {
    name: 'store-points',
    needs: 'until',
    help: 'with --until: store the points from which later queries begin, in the home directory',
  },
  ...KEY_OPTIONS,
] as const satisfies readonly CommandOption[];

type ReplayArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike replay`: checks that the machines would write the same ledger. */
export const replayCommand: CliCommand = defineCommand({
  name: 'replay',
  access: 'read',
  accessWith: [{ given: 'store-points', access: 'write' }],
  summary: 'Replay the ledger through the state machines; print what was checked, or the first difference',
  operands: { usage: '[RUN_ID|FILE]', min: 0, max: 1 },
  options: OPTIONS,
  notes: [
    'Needs nothing but the ledger and its artifacts. With RUN_ID, replays the run tree of that run; with FILE, the',
    'output of `ledger export`. Exits 1 at a difference, and 4 if nothing differs but not everything could be',
    'replayed: content was erased or withheld, entries are archived, this installation cannot evaluate a tree, or there',
    'was no input.',
    ...ENTRY_NOTES,
    'With RUN_ID, a number is an entry of its tree. The entries of one input are committed together: an ENTRY among them',
    'means the last of them. `--until last` shows the present state; with --store-points, run in advance, it makes later',
    'queries of a long ledger faster. Without --store-points, the command changes nothing.',
  ],
  async run(args, io) {
    const [operand] = args.operands;
    // A changed bundle is a result of this command. A changed home directory is a broken system.
    return operand !== undefined && isFileName(operand)
      ? exitOneIfTampered(io, () => replayOrShow(operand, args, io))
      : replayOrShow(operand, args, io);
  },
});

async function replayOrShow(operand: string | undefined, args: ReplayArguments, io: Io): Promise<ExitCode> {
  const run_id = operand === undefined || isFileName(operand) ? undefined : operand;
  const { until, json } = args.values;
  if (until !== undefined) return showState(until, operand, args, io);
  const report =
    operand === undefined || run_id !== undefined
      ? await withLedger(args, io, ({ reader }) => reader.replay(run_id))
      : await withEvidenceBundle(operand, args, io, (bundle) => replayLedger(bundle));
  if (run_id !== undefined && report.trees === 0) {
    throw new RunError({ code: 'RUN_UNKNOWN', message: `this ledger has no run ${run_id}` });
  }
  await io.stdout.write(json ? jsonLine(report) : textOf(report));
  return EXIT_CODES[report.verdict];
}

async function showState(text: string, operand: string | undefined, args: ReplayArguments, io: Io): Promise<ExitCode> {
  const { json, all, storePoints } = args.values;
  const isLast = text === 'last';
  const name = isLast ? null : parseEntryName(text);
  const file = operand !== undefined && isFileName(operand) ? operand : null;
  if (isLast && file === null && operand !== undefined)
    throw args.usageError('--until last cannot be combined with RUN_ID');
  const untilIn = async (log: NamedEntries & Pick<LedgerStore, 'head'>): Promise<number> =>
    name === null ? Math.max(0, (await log.head()).size - 1) : findLogIndex(text, log);
  // A bundle has no replay points: it is folded from its first entry.
  const state =
    file === null
      ? await withLedger(
          args,
          io,
          async ({ reader }) =>
            operand === undefined
              ? reader.stateAt({ until: await untilIn(reader.folded) })
              : reader.stateAt({ until: seqIn(operand, name, args), run_id: operand }),
          { storePoints },
        )
      : await withEvidenceBundle(file, args, io, async (bundle) =>
          stateAt(bundle, null, { until: await untilIn(bundle) }),
        );
  await io.stdout.write(json ? jsonLine(state) : await textOfState(state, all));
  return state.not_recomputed === undefined && state.needs === undefined ? 0 : 4;
}

async function textOfState(state: LedgerState, all: boolean): Promise<string> {
  return stateText(state, all, await Promise.all(FEATURES.flatMap(({ stateTable }) => stateTable?.() ?? [])));
}

/** The seq in the tree of a run, which a bare number names, because the run is given. */
function seqIn(run_id: string, name: EntryName | null, { usageError }: ReplayArguments): number {
  if (name?.kind === 'number') return name.number;
  if (name?.kind === 'tree' && name.tree_id === rootRunIdOf(run_id)) return name.seq;
  throw usageError('--until must name an entry of the run tree of RUN_ID');
}

const HEADLINES: Readonly<Record<Exclude<ReplayVerdict, 'differs'>, (counts: string) => string>> = {
  replayed: (counts) => `ok: ${counts}: every state, verdict and response came out as recorded`,
  by_hash_alone: (counts) =>
    `by hash alone: ${counts}: everything that could be replayed came out as recorded; not replayed:`,
  nothing: () => 'nothing was replayed: the ledger has no input to replay',
};

function textOf(report: ReplayReport): string {
  const { trees, entries, inputs, steps, responses, difference } = report;
  const counts = [
    countText(trees, 'run tree'),
    `${entries} entries`,
    countText(inputs, 'input'),
    countText(steps, 'step'),
    countText(responses, 'response'),
  ].join(', ');
  if (difference === null && report.verdict !== 'differs') {
    const others = report.other_machines;
    const note =
      others === 0 ? '' : `note: ${countText(others, 'run tree')} recorded by another version of the machines\n`;
    const lost = (report.not_recomputed ?? []).map(lineOf);
    const archived = report.archived === undefined ? '' : `${archivedNotice(report.archived)}\n`;
    return `${HEADLINES[report.verdict](counts)}\n${note}${lost.join('')}${archived}`;
  }
  if (difference === null) return '';
  const { tree_id, seq, rule, log_index, expected, found } = difference;
  if (rule === 'log.cut') return `the log ends at ${found}, and its heads say ${expected}: ${rule}\n`;
  const place = log_index === null ? 'after the last entry' : nameInLedger(log_index);
  const from = firstDifference(expected ?? '', found ?? '');
  return escapeLines([
    `${place} (${nameInTree(tree_id, seq)}): ${rule}`,
    `  expected: ${excerpt(expected, from)}`,
    `  found:    ${excerpt(found, from)}`,
    `before it: ${counts}, all as recorded`,
  ]);
}

const lineOf = ({ tree_id, seq, log_index, entries, ...why }: UnrecomputedTree): string =>
  `not recomputed: ${entries === 1 ? '1 entry' : `${entries} entries`} from ${nameBoth(log_index, tree_id, seq)} on: ` +
  `${reasonOf(why)}\n`;

const reasonOf = ({ case_id, withheld, needs }: Pick<UnrecomputedTree, 'case_id' | 'withheld' | 'needs'>): string =>
  needs ??
  (withheld === 'erased' ? `its content was erased with case ${case_id ?? ''}` : 'a lane withholds its content');

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Both texts are cut at the same position, so that a reader can compare them. */
function excerpt(text: string | null, difference: number): string {
  if (text === null) return 'nothing';
  const from = text.length <= SHOWN_CHARS ? 0 : Math.max(0, difference - BEFORE_CHARS);
  const shown = text.slice(from, from + SHOWN_CHARS);
  return `${from > 0 ? '…' : ''}${shown}${from + SHOWN_CHARS < text.length ? '…' : ''}`;
}

/** Counts ended runs; lists them only if `all` is true. The tables of features follow that of runs. */
export function stateText(state: LedgerState, all: boolean, added: readonly StateTable[]): string {
  const { until, through, time, trees, runs, not_recomputed: lost = [], needs } = state;
  const shownRuns = all ? runs : runs.filter(({ state }) => !isTerminal(state));
  const named =
    through === until
      ? nameInLedger(until)
      : `${nameInLedger(until)}, including the other entries of its input up to ${nameInLedger(through)}`;
  const lines = [
    `after ${named}${time === null ? '' : ` (${time})`}: ${countText(trees.begun, 'tree')}, ${trees.ended} of them ended`,
    ...alignColumns(['run', 'kind', 'state', 'at', 'since'], shownRuns.map(runRow)),
    ...added.flatMap(({ head, rows }) => alignColumns(head, rows(state))),
    ...(all ? [] : endedLines(runs)),
    ...lost.map((tree_id) => `not recomputed: the runs of ${tree_id}: ${needs ?? 'their content is not available'}`),
    ...(needs === undefined || lost.length > 0 ? [] : [`not checked: ${needs}`]),
  ];
  return escapeLines(lines);
}

const runRow = ({ run_id, kind, state, reason, step, at, since }: RunSnapshot): readonly string[] => [
  run_id,
  kind,
  reason ?? state,
  `${step === null ? '' : `step ${step}: `}${at ?? '-'}`,
  nameInLedger(since),
];

/** The number of ended runs per state. */
function endedLines(runs: readonly RunSnapshot[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { kind, state } of runs) {
    const key = `${kind} ${state}`;
    if (isTerminal(state)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  if (counts.size === 0) return [];
  return ['', `ended: ${[...counts].map(([key, count]) => `${count} ${key}`).join(', ')}`];
}

function alignColumns(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const widths = head.map((name, column) =>
    rows.reduce((wide, row) => Math.max(wide, row[column]?.length ?? 0), name.length),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return ['', line(head), ...rows.map(line)];
}
