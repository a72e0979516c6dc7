import type { AuditEvent } from '../../../../core/contract/run/audit-event.js';
import type { StepTrace } from '../../../../core/contract/run/step-trace.js';
import { RunError } from '../../../../core/errors.js';
import { systemClock } from '../../../../system/system-clock.js';
import { type LedgerReader, type RunTree } from '../../../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../../core/contract/run/run-context.js';
import { commandUsageError } from '../../arguments.js';
import type { CommandArguments, CliCommand, ExitCode } from '../../command.js';
import { withLedger } from '../../options/folders.js';
import { matchesFilter, parseRunFilter, RUN_FILTER_OPTIONS, type RunFilter } from '../../options/run-filter.js';
import type { Io } from '../../io.js';
import { CHILDREN_SHOWN, runText, treeText, type RunDetails } from '../../text/run-text.js';
import { jsonLine, createPainter } from '../../text/terminal.js';
import { followRuns } from './follow-runs.js';

const LIMIT_DEFAULT = 20;

/** `turnpike runs`: shows the outcomes of agents and their proposals. */
export const runs: CliCommand = {
  name: 'runs',
  access: 'read',
  summary: 'List the run trees, or print one run record with its events',
  operands: { usage: '[RUN_ID]', min: 0, max: 1 },
  options: [
    { name: 'limit', value: 'N', help: `list the last N run trees (default ${LIMIT_DEFAULT})` },
    ...RUN_FILTER_OPTIONS,
    { name: 'follow', help: 'go on, and print each run when its state changes, until a signal' },
    { name: 'all', help: `list all children of a run, not only the first ${CHILDREN_SHOWN}` },
  ],
  notes: [
    'The newest tree comes last. Needs no lock. With --json: one run record per line, or one object for RUN_ID. A run',
    'with an unknown outcome is marked until `turnpike runs resolve` settles it; its record has `unknown_outcome`,',
    'with the settlement. Conditions of several options must all hold for one run of a tree.',
  ],
  async run(args, io) {
    const limit = args.text('limit') ?? String(LIMIT_DEFAULT);
    if (!/^[1-9]\d{0,8}$/u.test(limit)) throw commandUsageError(runs, '--limit takes a number of at least 1');
    const filter = parseRunFilter(runs, args, systemClock().now());
    const [run_id] = args.operands;
    if (run_id !== undefined && args.flag('follow')) throw commandUsageError(runs, '--follow takes no RUN_ID');
    return withLedger(args, io, async ({ reader }) => {
      if (run_id !== undefined) return showRun(reader, run_id, args, io);
      const size = await reader.size();
      await listTrees(reader, { limit: Number(limit), filter }, args, io);
      if (args.flag('follow')) await followRuns(reader, { from: size, filter }, args, io);
      return 0;
    });
  },
};

async function listTrees(
  reader: LedgerReader,
  { limit, filter }: { readonly limit: number; readonly filter: RunFilter },
  args: CommandArguments,
  io: Io,
): Promise<void> {
  const paint = createPainter(io.colours);
  let empty = true;
  for await (const tree of reader.trees(limit, ({ runs }) => matchesFilter(runs, filter))) {
    if (args.flag('json')) {
      for (const record of tree.runs) {
        await io.stdout.write(jsonLine({ ...record, ...unknownOutcomeOf(tree, record.run_id) }));
      }
    } else {
      const text = treeText(tree, paint, args.flag('all') ? Infinity : CHILDREN_SHOWN);
      await io.stdout.write(empty ? text : `\n${text}`);
    }
    empty = false;
  }
  if (empty) await io.stderr.writeLine(emptyNotice(args));
}

const emptyNotice = (args: CommandArguments): string =>
  RUN_FILTER_OPTIONS.some(({ name }) => args.isGiven(name))
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
  if (args.flag('json')) {
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
