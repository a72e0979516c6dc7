// Which run trees `turnpike runs` lists.

import type { RunRecord } from '../../../core/contract/run/run-record.js';
import { RUN_STATES, type RunState } from '../../../core/contract/run/run-context.js';
import { commandUsageError, quoteArgument } from '../arguments.js';
import type { CliCommand, CommandArguments, CommandOption } from '../command.js';

export const RUN_FILTER_OPTIONS: readonly CommandOption[] = [
  { name: 'since', value: 'TIME', help: 'only run trees opened since then: 2026-11-01T08:00:00Z, or 30m, 2h, 7d ago' },
  { name: 'status', value: 'STATE', multiple: true, help: 'only trees with a run in this state; may be repeated' },
  { name: 'case', value: 'ID', help: 'only trees of this case' },
  { name: 'rule', value: 'ID', help: 'only trees with a run that this rule denied or failed' },
];

export interface RunFilter {
  /** In ms since 1970, or null. */
  readonly since: number | null;
  /** Empty: any. */
  readonly states: readonly RunState[];
  readonly case_id: string | null;
  readonly rule: string | null;
}

/** @throws UsageError for an invalid time or state */
export function parseRunFilter(command: CliCommand, args: CommandArguments, now: number): RunFilter {
  const since = args.text('since');
  return {
    since: since === undefined ? null : parseSince(command, since, now),
    states: args.list('status').map((text) => {
      const state = RUN_STATES.find((name) => name === text);
      if (state !== undefined) return state;
      throw commandUsageError(command, `--status takes ${RUN_STATES.join(', ')}, not ${quoteArgument(text)}`);
    }),
    case_id: args.text('case') ?? null,
    rule: args.text('rule') ?? null,
  };
}

/** Whether a tree is listed: one of its runs matches every condition. */
export function matchesFilter(runs: readonly RunRecord[], { since, states, case_id, rule }: RunFilter): boolean {
  const [root] = runs;
  if (since !== null && (root === undefined || Date.parse(root.created_at_utc) < since)) return false;
  return runs.some(
    (run) =>
      (states.length === 0 || states.includes(run.status)) &&
      (case_id === null || run.case_id === case_id) &&
      (rule === null || ruleOf(run) === rule),
  );
}

/** The part of the outcome after the state: `denied:extension.not_allowed`. */
const ruleOf = ({ outcome = '' }: RunRecord): string => outcome.slice(outcome.indexOf(':') + 1);

const UNITS: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)?$/;

function parseSince(command: CliCommand, text: string, now: number): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const unitMs = UNITS.get(unit);
  if (unitMs !== undefined) return now - Number(count) * unitMs;
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw commandUsageError(command, `--since takes a UTC time or 30m, 2h, 7d, not ${quoteArgument(text)}`);
  }
  return time;
}
