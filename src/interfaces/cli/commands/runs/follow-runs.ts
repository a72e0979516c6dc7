// `turnpike runs --follow`: prints runs as they change, from the log of the ledger.

import type { RunRecord } from '../../../../core/contract/run/run-record.js';
import { createLruMap, type LruMap } from '../../../../system/lru-map.js';
import type { LedgerReader } from '../../../../runtime/ledger/ledger-reader.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { CommandArguments } from '../../command.js';
import type { Io } from '../../io.js';
import { matchesFilter, type RunFilter } from '../../options/run-filter.js';
import { runLineText } from '../../text/run-text.js';
import { createPainter, jsonLine } from '../../text/terminal.js';

/** Interval between two looks at the log, in ms. */
const POLL_MS = 500;
/** States of so many runs are remembered; a run beyond them may be printed again in its old state. */
const RUNS_MAX = 100_000;

/** Prints each run that changes its state after entry `from` of the log, until the command should stop. */
export async function followRuns(
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
        await io.stdout.write(args.flag('json') ? jsonLine(run) : runLineText(run, paint));
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
