// Formats runs for people: a tree of runs, or one run with its events.

import { nameInTree } from '../../../core/contract/entry-name.js';
import type { AuditEvent } from '../../../core/contract/run/audit-event.js';
import type { RunRecord } from '../../../core/contract/run/run-record.js';
import { rootRunIdOf, type RunState } from '../../../core/contract/run/run-context.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import { type RunTree, type Settlement } from '../../../runtime/ledger/ledger-reader.js';
import { escapeText, shortenText, table, type TextCell, type Colour, type Paint } from './terminal.js';

/** The number of children that a tree shows per run. Of more, it shows the count per state. */
export const CHILDREN_SHOWN = 20;
const REASON_CHARS = 80;

const STATE_COLOURS: Readonly<Record<RunState, Colour>> = {
  created: 'dim',
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  denied: 'yellow',
  cancelled: 'magenta',
};

/** A run tree: one line per run, children below their parent. */
export function treeText({ runs, unknown }: RunTree, paint: Paint, childrenShown = CHILDREN_SHOWN): string {
  const children = new Map<string, RunRecord[]>();
  for (const run of runs) {
    const siblings = children.get(run.parent_run_id ?? '');
    if (siblings === undefined) children.set(run.parent_run_id ?? '', [run]);
    else siblings.push(run);
  }
  const rows: (readonly TextCell[])[] = [];
  const add = (run: RunRecord, lead: string, below: string): void => {
    rows.push(rowOf(run, lead, unknown.get(run.run_id)));
    const all = children.get(run.run_id) ?? [];
    const shownChildren = all.slice(0, childrenShown);
    const rest = all.slice(shownChildren.length);
    shownChildren.forEach((child, i) => {
      const last = i === shownChildren.length - 1 && rest.length === 0;
      add(child, `${below}${last ? '└─ ' : '├─ '}`, `${below}${last ? '   ' : '│  '}`);
    });
    if (rest.length > 0)
      rows.push([{ text: `${below}└─ … ${rest.length} more: ${countsByState(rest)}`, colour: 'dim' }]);
  };
  for (const root of children.get('') ?? []) add(root, '', '');
  return table(rows, paint);
}

/** One run as one line. */
export const runLineText = (run: RunRecord, paint: Paint): string => table([rowOf(run, '', undefined)], paint);

const rowOf = (run: RunRecord, lead: string, settlement: Settlement | null | undefined): readonly TextCell[] => [
  { text: `${lead}${escapeText(run.run_id)}` },
  { text: escapeText(run.run_kind), colour: 'dim' },
  { text: run.status, colour: STATE_COLOURS[run.status] },
  { text: timeOf(run.created_at_utc) },
  { text: run.duration_ms === undefined ? '' : durationOf(run.duration_ms) },
  { text: shortenText(run.run_name ?? laneText(run), REASON_CHARS) },
  { text: shortenText(reasonText(run), REASON_CHARS), colour: STATE_COLOURS[run.status] },
  ...(settlement === undefined ? [] : [settlementCell(settlement)]),
];

/** D8: whether an unknown outcome still has to be settled or how it was. */
const settlementCell = (settlement: Settlement | null): TextCell =>
  settlement === null
    ? { text: 'not settled: `turnpike runs resolve`', colour: 'red' }
    : { text: `settled: ${settlement.outcome}`, colour: 'green' };

function settlementText(settlement: Settlement | null | undefined): string | undefined {
  if (settlement === undefined) return undefined;
  if (settlement === null)
    return 'unknown: find out whether the action was executed, then record it with `turnpike runs resolve`';
  const { outcome, actor_id, role_id, at, note } = settlement;
  return `settled as ${outcome} by ${actor_id} as ${role_id}, ${timeOf(at)}${note === null ? '' : `: ${note}`}`;
}

const laneText = ({ actor: { lane_id, role_id } }: RunRecord): string =>
  lane_id === undefined ? '' : `${lane_id} as ${role_id ?? ''}`;

/** The part of the outcome after the state: `extension.not_allowed` in `denied:extension.not_allowed`. */
const reasonText = ({ outcome = '', status }: RunRecord): string =>
  outcome.startsWith(`${status}:`) ? outcome.slice(status.length + 1) : outcome === status ? '' : outcome;

function countsByState(runs: readonly RunRecord[]): string {
  const counts = new Map<RunState, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
}

/** All that the ledger records of one run. */
export interface RunDetails {
  readonly record: RunRecord;
  readonly events: readonly AuditEvent[];
  /** For an agent run. */
  readonly steps: readonly StepTrace[];
  /** For a run with an unknown outcome: how it was settled, or null. */
  readonly settlement: Settlement | null | undefined;
}

/** One run: its record, then its events. */
export function runText({ record, events, steps, settlement }: RunDetails, paint: Paint): string {
  const { actor, policy_versions: pins, error } = record;
  const facts: readonly (readonly [string, string | undefined, Colour?])[] = [
    ['run', record.run_id],
    ['kind', record.run_name === undefined ? record.run_kind : `${record.run_kind} ${record.run_name}`],
    ['state', record.outcome ?? record.status, STATE_COLOURS[record.status]],
    ['error', error && `${error.error_code}: ${error.message}`, 'red'],
    ['outcome', settlementText(settlement), settlement === null ? 'red' : 'green'],
    ['created', timeOf(record.created_at_utc)],
    ['took', record.duration_ms === undefined ? undefined : durationOf(record.duration_ms)],
    ['parent', record.parent_run_id],
    ['correlation', record.correlation_id],
    ['case', record.case_id],
    ['actor', `${actor.actor_type} ${actor.actor_id}`],
    ['role', actor.role_id],
    ['lane', actor.lane_id],
    ['pins', `lanes ${pins.lanes}, roles ${pins.roles}, actions ${pins.actions}`],
  ];
  const known = facts.flatMap(([name, value, colour]): TextCell[][] =>
    value === undefined
      ? []
      : [
          [
            { text: name, colour: 'dim' },
            { text: escapeText(value), colour },
          ],
        ],
  );
  return [
    table(known, paint),
    '\nevents\n',
    table(events.map(eventRow), paint),
    steps.length === 0 ? '' : `\nsteps\n${table(steps.map(stepRow), paint)}`,
  ].join('');
}

const OUTCOME_COLOURS = { allow: 'green', success: 'green', deny: 'yellow', failure: 'red' } as const;

function eventRow(event: AuditEvent): readonly TextCell[] {
  const { target } = event;
  const why = event.authz?.rule_id ?? event.outcome_reason ?? '';
  const what =
    target === undefined ? '' : `${target.name}${target.operation === undefined ? '' : ` ${target.operation}`}`;
  return [
    { text: `  ${escapeText(nameInTree(rootRunIdOf(event.run_id), event.sequence))}`, colour: 'dim' },
    { text: timeOf(event.timestamp_utc) },
    { text: event.action_type },
    { text: event.outcome, colour: OUTCOME_COLOURS[event.outcome] },
    { text: shortenText(why, REASON_CHARS) },
    { text: shortenText(what, REASON_CHARS) },
  ];
}

function stepRow(step: StepTrace): readonly TextCell[] {
  const { outcome, cause, rule_id, explanation } = step;
  const colour = outcome === 'SUCCESS' ? 'green' : outcome === 'EXECUTION_ERROR' ? 'red' : 'yellow';
  const why = step.error_code === null ? '' : `${step.error_code}${cause === null ? '' : ` ${cause}`}`;
  return [
    { text: `  ${step.step_index}`, colour: 'dim' },
    { text: timeOf(step.completed_at) },
    { text: shortenText([step.action ?? '-', ...pathsOf(step)].join(' '), REASON_CHARS) },
    { text: outcome, colour },
    { text: shortenText(why, REASON_CHARS) },
    { text: shortenText(explanation ?? rule_id ?? '', REASON_CHARS) },
    { text: escapeText(step.mediated_run_id ?? '') },
  ];
}

/** The arguments that the trace holds verbatim: paths. */
const pathsOf = ({ args_summary }: StepTrace): readonly string[] =>
  Object.values(args_summary ?? {}).filter((value) => typeof value === 'string');

/** `2026-11-21 23:10:04Z` */
const timeOf = (timestamp: string): string => escapeText(`${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)}Z`);

const durationOf = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`);
