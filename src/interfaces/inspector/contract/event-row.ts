// Formats an entry as one row, and rows as one page, for a list that is scrolled. The service and the page make the
// same rows from the same texts, so this file has no schema and uses nothing that a browser lacks. Tampered entries
// must be listed too: no text makes these functions throw.

import type { Entry, RunCreated } from '../../../core/contract/run/entry.js';
import type {
  ClientSession,
  RunCreationFacts,
  EventRow,
  RowPage,
  RowTuple,
  Tone,
} from '../../../core/contract/inspection/inspection.js';
import { AS_REPORTED } from '../../../core/contract/inspection/as-reported.js';
import { APPROVAL_RULE, NEEDS_APPROVAL, needsApproval } from '../../../core/contract/inspection/needs-approval.js';
import { RUN_STATES, stateAfterEvent, type RunState } from '../../../core/contract/run/run-context.js';
import type { ProposalLabel } from '../../../core/contract/inspection/proposal-label.js';
import { PROPOSAL_LABELS } from '../../../features/feature-labels.js';

/** The row of an entry, made from its canonical text. A text that is not an entry gets a row that says so. */
export function toEventRow(text: string, log_index: number, leaf_hash: string): EventRow {
  const entry = parseEntry(text);
  const content = entry === null ? UNREADABLE_ROW : describeEntry(entry);
  // Written out member by member for speed: a page makes a hundred thousand rows while its user waits.
  return {
    log_index,
    seq: entry?.seq ?? 0,
    run_id: content.run_id,
    tree_id: entry?.tree_id ?? '',
    type: entry?.type ?? 'input',
    label: content.label,
    tone: content.tone,
    time: content.time,
    step: content.step,
    hash: leaf_hash.slice(0, HASH_DIGITS),
    state: content.state,
    creation: content.creation,
  };
}
const HASH_DIGITS = 8;

type RowContent = Pick<EventRow, 'run_id' | 'label' | 'tone' | 'time' | 'step' | 'state' | 'creation'>;

const rowContent = (
  run_id: string,
  label: string,
  tone: Tone,
  time: string,
  step = 0,
  state: RunState | null = null,
  creation: RunCreationFacts | null = null,
): RowContent => ({ run_id, label, tone, time: Date.parse(time), step, state, creation });

const UNREADABLE_ROW = rowContent('', 'unreadable', 'plain', '1970-01-01T00:00:00.000Z');

function parseEntry(text: string): Entry | null {
  try {
    const entry = JSON.parse(text) as Partial<Entry> | null;
    const isValid =
      typeof entry?.body === 'object' &&
      typeof entry.seq === 'number' &&
      typeof entry.tree_id === 'string' &&
      (Object.hasOwn(ROW_CONTENTS, String(entry.type)) || 'feature' in entry.body);
    return isValid ? (entry as Entry) : null;
  } catch {
    return null;
  }
}

/** A tampered entry can lack members or have members of another type. */
function describeEntry(entry: Entry): RowContent {
  try {
    const describe = Object.hasOwn(ROW_CONTENTS, entry.type) ? ROW_CONTENTS[entry.type as CoreType] : null;
    const content = describe === null ? featureContent(entry.body, entry.tree_id) : describe(entry as never);
    const isValid =
      typeof content.run_id === 'string' && typeof content.label === 'string' && Number.isSafeInteger(content.time);
    return isValid && typeof content.step === 'number' ? content : UNREADABLE_ROW;
  } catch {
    return UNREADABLE_ROW;
  }
}

type EntryOf<T extends Entry['type']> = Extract<Entry, { readonly type: T }>;

type CoreType = 'input' | 'run_created' | 'audit_event' | 'step_trace';

const ROW_CONTENTS: { readonly [T in CoreType]: (entry: EntryOf<T>) => RowContent } = {
  input: ({ body }) => rowContent(body.run_id, inputLabel(body), 'plain', body.time),
  run_created: ({ body }) =>
    rowContent(body.run_id, 'created', 'created', body.created_at_utc, 0, 'created', creationFactsOf(body)),
  audit_event: ({ body }) => {
    const newState = stateAfterEvent(body);
    const state = newState !== null && RUN_STATES.includes(newState) ? newState : null;
    return rowContent(body.run_id, auditLabel(body, state), auditTone(body, state), body.timestamp_utc, 0, state);
  },
  step_trace: ({ body }) => {
    const outcome = needsApproval(body.rule_id) ? NEEDS_APPROVAL : body.outcome;
    return rowContent(body.run_id, outcome, outcome, body.completed_at, body.step_index);
  },
};

/** What an entry of a feature may have, whatever its type. */
interface FeatureBody {
  readonly feature?: unknown;
  readonly event?: unknown;
  readonly run_id?: string | null;
  readonly timestamp_utc?: string;
}

/** The row of an entry of a feature: its event, with the run that it names or the root of its tree. */
function featureContent(body: FeatureBody, tree_id: string): RowContent {
  const event = String(body.event ?? body.feature);
  const tone = Object.hasOwn(EVENT_TONES, event) ? (EVENT_TONES[event] ?? 'plain') : 'plain';
  return rowContent(body.run_id ?? tree_id, event, tone, body.timestamp_utc ?? '');
}

/** The kind of an input, with the one word that distinguishes it within its kind. */
function inputLabel(body: EntryOf<'input'>['body']): string {
  switch (body.kind) {
    case 'result':
    case 'report':
      return `${body.kind} ${body.status}`;
    case 'start_run':
      return `start_run ${body.run_kind}`;
    case 'proposal':
      return proposalLabel(body);
    case 'vote':
      return `vote ${body.decision}`;
    case 'resolve':
      return `resolve ${body.outcome}`;
    case 'restore':
      return `ledger ${body.event}`;
    case 'rotate_key':
      return body.rotation.purpose === 'case'
        ? `case key rotation ${body.rotation.case_id}.${body.rotation.key_no}`
        : `ledger key rotation ${body.rotation.number}`;
    default:
      return commandLabel(body);
  }
}

/** A loop, because a page makes a hundred thousand rows while its user waits. */
function proposalLabel(body: Parameters<ProposalLabel>[0]): string {
  for (const labelOf of PROPOSAL_LABELS) {
    const label = labelOf(body);
    if (label !== null) return label;
  }
  return body.kind;
}

/** A command to a feature has a name. */
function commandLabel(body: { readonly kind: string; readonly command?: { readonly name?: unknown } }): string {
  const name = body.command?.name;
  return typeof name === 'string' ? `${body.kind} ${name}` : body.kind;
}

function auditLabel(event: EntryOf<'audit_event'>['body'], state: RunState | null): string {
  const { action_type, outcome, outcome_reason = '' } = event;
  if (isWaitingDecision(event)) return `authz ${NEEDS_APPROVAL}`;
  if (isApprovalDenial(event)) return NEEDS_APPROVAL;
  if (action_type === 'authz_decision') return outcome === 'allow' ? 'authz allow' : 'authz deny';
  if (action_type !== 'system') return `${action_type} ${outcome}${event.reported === undefined ? '' : AS_REPORTED}`;
  // The caller gives the reason of a cancellation: only a reason in the form of the platform's codes is a label.
  return CODE.test(outcome_reason) ? outcome_reason : (state ?? outcome);
}

function auditTone(event: EntryOf<'audit_event'>['body'], state: RunState | null): Tone {
  const { action_type, outcome } = event;
  if (isWaitingDecision(event) || isApprovalDenial(event)) return NEEDS_APPROVAL;
  if (action_type === 'authz_decision') return outcome === 'allow' ? 'allow' : 'deny';
  return state ?? (outcome === 'failure' || outcome === 'deny' ? 'failed' : 'plain');
}
const CODE = /^[\w.:-]{1,80}$/;

/** A decision that waits for an approval, whichever verdict is recorded. Events about votes are decided themselves. */
const isWaitingDecision = ({ action_type, authz, target }: EntryOf<'audit_event'>['body']): boolean =>
  action_type === 'authz_decision' && needsApproval(authz?.rule_id) && target?.name !== 'approval';

/** The end of a run whose request needs an approval first: the rule of the denial is the reason of its end. */
const isApprovalDenial = ({ outcome_reason }: EntryOf<'audit_event'>['body']): boolean =>
  outcome_reason === `denied:${APPROVAL_RULE}`;

/** The tones of events of features that are more than plain. */
const EVENT_TONES: Readonly<Record<string, Tone | undefined>> = {
  step_refused: 'deny',
  gate_passed: 'completed',
  gate_failed: 'failed',
  check_failed: 'failed',
  fail: 'failed',
  end: 'cancelled',
  spec_complete: 'completed',
};

const creationFactsOf = (run: RunCreated): RunCreationFacts => ({
  kind: run.run_kind,
  parent: run.parent_run_id,
  lane: run.lane_id,
  role: run.role_id,
  actor: run.actor.actor_id,
  case: run.case_id,
  correlation: run.correlation_id,
  link: run.link,
  pins: {
    contract: run.contract_version,
    lanes: run.policy_versions.lanes,
    roles: run.policy_versions.roles,
  },
  request: run.request?.name ?? null,
  retry_of: run.retry?.of ?? null,
  executor: run.executor ?? null,
  client: run.run_kind === 'agent' ? clientOf(run.scope) : null,
});

/** The session of a coding agent that a scope names. */
function clientOf(scope: RunCreated['scope']): ClientSession | null {
  const { client, client_session, client_version, client_uncompared, project } = scope;
  if (client === undefined || client_session === undefined || project === undefined) return null;
  const [version, uncompared] = [client_version ?? null, client_uncompared ?? null];
  return { name: client, session: client_session, version, project, uncompared };
}

/** Stores repeated texts once and identifies them by number. */
export class StringTable {
  readonly #numbers = new Map<string, number>();
  readonly texts: string[] = [];

  /** The number of a text; adds a new text. */
  add(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }

  /** The number of a text, or -1. */
  find(text: string): number {
    return this.#numbers.get(text) ?? -1;
  }

  at(number: number): string {
    return this.texts[number] ?? '';
  }
}

/** Builds one page, row by row, from consecutive rows. */
export class RowPacker {
  readonly #table = new StringTable();
  readonly #rows: RowTuple[] = [];
  #from = 0;
  #time_base = 0;

  add(row: EventRow): void {
    if (this.#rows.length === 0) [this.#from, this.#time_base] = [row.log_index, row.time];
    const table = this.#table;
    const [tree, run, type] = [table.add(row.tree_id), table.add(row.run_id), table.add(row.type)];
    const texts = [tree, run, type, table.add(row.label), table.add(row.tone)] as const;
    const state = row.state === null ? -1 : table.add(row.state);
    const tuple = [row.seq, ...texts, row.time - this.#time_base, row.step, row.hash, state] as const;
    this.#rows.push(row.creation === null ? tuple : [...tuple, row.creation]);
  }

  page(): RowPage {
    return { from: this.#from, texts: this.#table.texts, time_base: this.#time_base, rows: this.#rows };
  }
}

export function packRows(rows: readonly EventRow[]): RowPage {
  const packer = new RowPacker();
  for (const row of rows) packer.add(row);
  return packer.page();
}

export const unpackRows = ({ from, texts, time_base, rows }: RowPage): EventRow[] =>
  rows.map(([seq, tree, run, type, label, tone, time, step, hash, state, creation], i) => ({
    log_index: from + i,
    seq,
    run_id: texts[run] ?? '',
    tree_id: texts[tree] ?? '',
    type: texts[type] as EventRow['type'],
    label: texts[label] ?? '',
    tone: texts[tone] as Tone,
    time: time_base + time,
    step,
    hash,
    state: state < 0 ? null : (texts[state] as RunState),
    creation: creation ?? null,
  }));
