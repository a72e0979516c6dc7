import { setTimeout as delay } from 'node:timers/promises';
import type { AuditEvent } from '../../../../core/contract/run/audit-event.js';
import { rootRunIdOf, RUN_STATES } from '../../../../core/contract/run/run-context.js';
import type { RunRecord } from '../../../../core/contract/run/run-record.js';
import type { StepTrace } from '../../../../core/contract/run/step-trace.js';
import { RunError } from '../../../../core/errors.js';
import { type LedgerReader, type RunTree } from '../../../../runtime/ledger/ledger-reader.js';
import { createLruMap, type LruMap } from '../../../../system/lru-map.js';
import { systemClock } from '../../../../system/system-clock.js';
import {
  defineCommand,
  type CliCommand,
  type CommandArguments,
  type CommandOption,
  type ExitCode,
  type OptionValues,
} from '../../command.js';
import type { Io } from '../../io.js';
import { integerType, wordType, type OptionType } from '../../option-types.js';
import { withLedger } from '../../options/folders.js';
import { CHILDREN_SHOWN, runLineText, runText, treeText, type RunDetails } from '../../text/run-text.js';
import { createPainter, jsonLine } from '../../text/terminal.js';

const LIMIT_DEFAULT = 20;

const UNITS: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)?$/;

/** A time in ms since 1970: as such, or as what has passed since. */
const SINCE_TYPE: OptionType<number> = {
  takes: 'a UTC time or 30m, 2h, 7d',
  quotes: true,
  parse: (text) => {
    const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
    const unitMs = UNITS.get(unit);
    if (unitMs !== undefined) return systemClock().now() - Number(count) * unitMs;
    const time = TIME.test(text) ? Date.parse(text) : Number.NaN;
    return Number.isNaN(time) ? undefined : time;
  },
};

/** Which run trees the command lists. */
const FILTER_OPTIONS = [
  {
    name: 'since',
    value: 'TIME',
    type: SINCE_TYPE,
    help: 'only run trees opened since then: 2026-11-01T08:00:00Z, or 30m, 2h, 7d ago',
  },
  {
    name: 'status',
    value: 'STATE',
    type: wordType(RUN_STATES),
    multiple: true,
    help: 'only trees with a run in this state; may be repeated',
  },
  { name: 'case', value: 'ID', help: 'only trees of this case' },
  { name: 'rule', value: 'ID', help: 'only trees with a run that this rule denied or failed' },
] as const satisfies readonly CommandOption[];

export type RunFilter = OptionValues<typeof FILTER_OPTIONS>;

/** `turnpike runs`: shows the outcomes of agents and their proposals. */
export const runs: CliCommand = defineCommand({
  name: 'runs',
  access: 'read',
  summary: 'List the run trees, or print one run record with its events',
  operands: { usage: '[RUN_ID]', min: 0, max: 1 },
  options: [
    {
      name: 'limit',
      value: 'N',
      type: integerType({ min: 1, takes: 'a number of at least 1' }),
      default: String(LIMIT_DEFAULT),
      help: `list the last N run trees (default ${LIMIT_DEFAULT})`,
    },
    ...FILTER_OPTIONS,
    { name: 'follow', help: 'go on, and print each run when its state changes, until a signal' },
    { name: 'all', help: `list all children of a run, not only the first ${CHILDREN_SHOWN}` },
  ],
  notes: [
    'The newest tree comes last. Needs no lock. With --json: one run record per line, or one object for RUN_ID. A run',
    'with an unknown outcome is marked until `turnpike runs resolve` settles it; its record has `unknown_outcome`,',
    'with the settlement. Conditions of several options must all hold for one run of a tree.',
  ],
  async run(args, io) {
    const { limit, follow, all, ...filter } = args.values;
    const [run_id] = args.operands;
    if (run_id !== undefined && follow) throw args.usageError('--follow takes no RUN_ID');
    return withLedger(args, io, async ({ reader }) => {
      if (run_id !== undefined) return showRun(reader, run_id, args, io);
      const size = await reader.size();
      await listTrees(reader, { limit, filter, all }, args, io);
      if (follow) await followRuns(reader, { from: size, filter }, args, io);
      return 0;
    });
  },
});

async function listTrees(
  reader: LedgerReader,
  { limit, filter, all }: { readonly limit: number; readonly filter: RunFilter; readonly all: boolean },
  args: CommandArguments,
  io: Io,
): Promise<void> {
  const paint = createPainter(io.colours);
  let empty = true;
  for await (const tree of reader.trees(limit, ({ runs }) => matchesFilter(runs, filter))) {
    if (args.values.json) {
      for (const record of tree.runs) {
        await io.stdout.write(jsonLine({ ...record, ...unknownOutcomeOf(tree, record.run_id) }));
      }
    } else {
      const text = treeText(tree, paint, all ? Infinity : CHILDREN_SHOWN);
      await io.stdout.write(empty ? text : `\n${text}`);
    }
    empty = false;
  }
  if (empty) await io.stderr.writeLine(emptyNotice(args));
}

const emptyNotice = (args: CommandArguments): string =>
  FILTER_OPTIONS.some(({ name }) => args.isGiven(name))
    ? 'no run matches'
    : 'no runs yet: `turnpike run proposals.jsonl` starts one';

/** D8: added to the JSON record of a run with an unknown outcome. */
function unknownOutcomeOf({ unknown }: RunTree, run_id: string) {
  const settled = unknown.get(run_id);
  return settled === undefined ? {} : { unknown_outcome: { settled } };
}

async function showRun(reader: LedgerReader, run_id: string, args: CommandArguments, io: Io): Promise<ExitCode> {
  const details = await readDetails(reader, run_id);
  if (details === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `this ledger has no run ${run_id}` });
  if (args.values.json) {
    const { settlement, ...recordedDetails } = details;
    await io.stdout.write(
      jsonLine({
        ...recordedDetails,
        ...(settlement === undefined ? {} : { unknown_outcome: { settled: settlement } }),
      }),
    );
  } else {
    await io.stdout.write(runText(details, createPainter(io.colours)));
  }
  return 0;
}

async function readDetails(reader: LedgerReader, run_id: string): Promise<RunDetails | null> {
  const tree = await reader.treeOf(run_id);
  const record = tree?.runs.find((run) => run.run_id === run_id);
  if (tree === null || record === undefined) return null;
  const events: AuditEvent[] = [];
  const steps: StepTrace[] = [];
  for await (const entry of reader.entries(rootRunIdOf(run_id))) {
    if (entry.type === 'audit_event' && entry.body.run_id === run_id) events.push(entry.body);
    if (entry.type === 'step_trace' && entry.body.run_id === run_id) steps.push(entry.body);
  }
  return { record, events, steps, settlement: tree.unknown.get(run_id) };
}

/** Whether a tree is listed: one of its runs matches every condition. */
export function matchesFilter(
  runs: readonly RunRecord[],
  { since, status: states, case: case_id, rule }: RunFilter,
): boolean {
  const [root] = runs;
  if (since !== undefined && (root === undefined || Date.parse(root.created_at_utc) < since)) return false;
  return runs.some(
    (run) =>
      (states.length === 0 || states.includes(run.status)) &&
      (case_id === undefined || run.case_id === case_id) &&
      (rule === undefined || ruleOf(run) === rule),
  );
}

/** The part of the outcome after the state: `denied:extension.not_allowed`. */
const ruleOf = ({ outcome = '' }: RunRecord): string => outcome.slice(outcome.indexOf(':') + 1);

/** Interval between two looks at the log, in ms. */
const POLL_MS = 500;
/** States of so many runs are remembered; a run beyond them may be printed again in its old state. */
const RUNS_MAX = 100_000;

/** Prints each run that changes its state after entry `from` of the log, until the command should stop. */
async function followRuns(
  reader: LedgerReader,
  { from, filter }: { readonly from: number; readonly filter: RunFilter },
  args: CommandArguments,
  io: Io,
): Promise<void> {
  const stop = io.stop();
  io.progress.close();
  const isStopped = (): boolean => stop.aborted;
  const paint = createPainter(io.colours);
  const printed = createLruMap<string>(RUNS_MAX);
  let next = from;
  while (!isStopped()) {
    const touched = new Set<string>();
    for await (const { tree_id, log_index } of reader.log(next)) {
      touched.add(tree_id);
      next = log_index + 1;
      if (isStopped()) return;
    }
    for (const tree_id of touched) {
      for (const run of await changedRuns(reader, tree_id, printed)) {
        if (!matchesFilter([run], filter)) continue;
        await io.stdout.write(args.values.json ? jsonLine(run) : runLineText(run, paint));
      }
    }
    await delay(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** The runs of a tree whose state is not the one that was printed last. */
async function changedRuns(
  reader: LedgerReader,
  tree_id: string,
  printed: LruMap<string>,
): Promise<readonly RunRecord[]> {
  const { runs } = await reader.runTree(tree_id);
  const changed = runs.filter(({ run_id, status }) => printed.get(run_id) !== status);
  for (const { run_id, status } of changed) printed.set(run_id, status);
  return changed;
}
