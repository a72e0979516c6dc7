// Formats the past state of every run, and of what features have opened, as tables for people.

import { nameInLedger } from '../../../core/contract/entry-name.js';
import { isTerminal } from '../../../core/contract/run/run-context.js';
import type { LedgerState, RunSnapshot } from '../../../kernel/replay/ledger-state.js';
import type { StateTable } from '../command.js';
import { countText, escapeLines } from './terminal.js';

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
