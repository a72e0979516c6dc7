// Planted bugs, each a change of a ledger as a broken machine would have written it: at least one for every rule. A
// check that does not find its own bug does not check anything.

import type { AuditEvent } from '../../src/core/contract/run/audit-event.js';
import type { Entry, RunCreated } from '../../src/core/contract/run/entry.js';
import type { Played } from './play.js';
import type { CheckName } from './checks.js';
import { isVote, stateIn, turnRecordsOf, type TurnRecord } from './story.js';

export interface Plant {
  readonly name: string;
  /** The check that must find it. */
  readonly expects: CheckName;
  /** @returns the changed history; null if the tree has no place for it */
  plant(turns: readonly TurnRecord[], played: Played): readonly TurnRecord[] | null;
}

/** Changes the first entry to which `change` applies. */
function first(
  turns: readonly TurnRecord[],
  change: (entry: Entry, turn: TurnRecord) => Entry[] | null,
): readonly TurnRecord[] | null {
  let done = false as boolean;
  const changed = turns.map((turn) => {
    if (done) return turn;
    const entries = turn.entries.flatMap((entry) => {
      const other = done ? null : change(entry, turn);
      done ||= other !== null;
      return other ?? [entry];
    });
    return { ...turn, entries };
  });
  return done ? changed : null;
}

const born =
  (when: (run: RunCreated) => boolean, over: (run: RunCreated) => Partial<RunCreated>) =>
  (turns: readonly TurnRecord[]) =>
    first(turns, (entry) =>
      entry.type === 'run_created' && when(entry.body)
        ? [{ ...entry, body: { ...entry.body, ...over(entry.body) } }]
        : null,
    );

const said =
  (when: (event: AuditEvent) => boolean, over: (event: AuditEvent) => Partial<AuditEvent> | null) =>
  (turns: readonly TurnRecord[]) =>
    first(turns, (entry) => {
      if (entry.type !== 'audit_event' || !when(entry.body)) return null;
      const change = over(entry.body);
      return change === null ? [] : [{ ...entry, body: { ...entry.body, ...change } }];
    });

const mediated = ({ run_kind }: RunCreated): boolean => run_kind !== 'orchestrator' && run_kind !== 'agent';
const child = ({ parent_run_id }: RunCreated): boolean => parent_run_id !== null;
const ended = ({ action_type, outcome_reason = '' }: AuditEvent): boolean =>
  action_type === 'system' && /^(?:completed|failed|denied|cancelled)/.test(outcome_reason);
const allowed = ({ action_type, outcome }: AuditEvent): boolean =>
  action_type === 'authz_decision' && outcome === 'allow';
const approvedBy = (event: AuditEvent): boolean => isVote(event) && event.authz?.rule_id === 'approval.granted';
const drop = (): null => null;

/** Repeats an earlier entry, effect or response. */
const again =
  (when: (turn: TurnRecord) => boolean, more: (turn: TurnRecord) => Partial<TurnRecord>) =>
  (turns: readonly TurnRecord[]) => {
    const at = turns.findIndex(when);
    return at < 0 ? null : turns.map((turn, i) => (i === at ? { ...turn, ...more(turn) } : turn));
  };

/** Another person grants the approval that this tree has used, or it is removed. */
const votes = (over: (event: AuditEvent) => Partial<AuditEvent> | null) => (turns: readonly TurnRecord[]) =>
  turns.some(({ entries }) => entries.some((entry) => entry.type === 'audit_event' && usesApproval(entry.body)))
    ? turns.map((turn) => ({
        ...turn,
        entries: turn.entries.map((entry) =>
          entry.type === 'audit_event' && approvedBy(entry.body)
            ? { ...entry, body: { ...entry.body, ...over(entry.body) } }
            : entry,
        ),
      }))
    : null;
const usesApproval = (event: AuditEvent): boolean =>
  allowed(event) &&
  !isVote(event) &&
  event.request_hash_sha256 !== undefined &&
  event.authz?.rule_id !== 'approval.required';

/** Repeats an agent's action with an unknown outcome in the following turn. */
function doneAgain(turns: readonly TurnRecord[]): readonly TurnRecord[] | null {
  const at = turns.findIndex(
    ({ input, refused }) => input.kind === 'result' && input.status === 'unknown' && !refused && byAgent(input.run_id),
  );
  const { input } = turns[at] ?? {};
  const commands = turns.flatMap(({ commands: said }) => said);
  const command = commands.find(({ run_id }) => input?.kind === 'result' && run_id === input.run_id);
  // Another attempt with the key of the first may follow an unknown outcome.
  const first = command?.kind === 'perform' && command.effect.idempotency_key === command.run_id;
  if (!first || turns[at + 1] === undefined) return null;
  return turns.map((turn, i) => (i === at + 1 ? { ...turn, commands: [...turn.commands, command] } : turn));
}

/** `<root>.<agent>.<n>`, and below it. */
const byAgent = (run_id: string): boolean => run_id.split('.').length > 2;

export const PLANTS: readonly Plant[] = [
  { name: 'an event that is missing at the end of a run', expects: 'lifecycle', plant: said(ended, drop) },
  { name: 'a run without a decision', expects: 'lifecycle', plant: said(allowed, drop) },
  {
    name: 'a denial that becomes a completion',
    expects: 'lifecycle',
    plant: said(
      (event) => ended(event) && stateIn(event) === 'denied',
      () => ({ outcome_reason: 'completed', outcome: 'success' }),
    ),
  },
  {
    name: 'an allow that was a deny',
    expects: 'lifecycle',
    plant: said(
      ({ authz, action_type }) => action_type === 'authz_decision' && authz?.decision === 'deny',
      ({ authz }) => ({ outcome: 'allow', authz: { rule_id: authz?.rule_id ?? '', decision: 'allow' } }),
    ),
  },
  {
    name: 'a command that is issued twice',
    expects: 'lifecycle',
    plant: again(
      ({ commands }) => commands.some(({ kind }) => kind === 'perform'),
      ({ commands }) => ({ commands: [...commands, ...commands] }),
    ),
  },
  { name: 'a child that outlives its parent', expects: 'lifecycle', plant: (turns) => swapEnds(turns) },
  {
    name: 'a child with other pins',
    expects: 'inheritance',
    plant: born(child, ({ policy_versions }) => ({ policy_versions: { ...policy_versions, lanes: 'f'.repeat(40) } })),
  },
  {
    name: 'a child with another correlation',
    expects: 'inheritance',
    plant: born(child, () => ({ correlation_id: 'cor_other' })),
  },
  { name: 'a child with another case', expects: 'inheritance', plant: born(child, () => ({ case_id: 'case-9' })) },
  {
    name: 'a retry that does not name its first attempt',
    expects: 'inheritance',
    plant: born(
      ({ retry }) => retry !== null,
      ({ retry }) => ({ retry: retry === null ? null : { ...retry, count: retry.count + 1 } }),
    ),
  },
  { name: 'a retry after a permanent failure', expects: 'inheritance', plant: retriedForGood },
  {
    name: 'a grant that exceeds the remaining budget',
    expects: 'budgets',
    plant: born(
      ({ budget }) => budget?.steps != null,
      ({ budget }) => ({ budget: budget === null ? null : { ...budget, steps: (budget.steps ?? 0) + 1 } }),
    ),
  },
  {
    name: 'a step that has forgotten its budget',
    expects: 'budgets',
    plant: (turns) =>
      first(turns, (entry) =>
        entry.type === 'step_trace' && entry.body.cause === 'BUDGET'
          ? [
              {
                ...entry,
                body: { ...entry.body, cause: null, outcome: 'SUCCESS', phase_failed_at: null, rule_id: null },
              },
            ]
          : null,
      ),
  },
  {
    name: 'a denial for a budget that is not used up',
    expects: 'budgets',
    plant: (turns) =>
      first(turns, (entry) =>
        entry.type === 'step_trace' && entry.body.cause === 'LANE'
          ? [{ ...entry, body: { ...entry.body, cause: 'BUDGET', rule_id: 'budget.bytes' } }]
          : null,
      ),
  },
  {
    name: 'a tool call without its event',
    expects: 'events',
    plant: said(({ action_type }) => action_type === 'tool_call', drop),
  },
  {
    name: 'a write without its event',
    expects: 'events',
    plant: said(({ action_type }) => action_type === 'db_write', drop),
  },
  {
    name: 'a read without its event',
    expects: 'events',
    plant: said(({ action_type }) => action_type === 'db_read', drop),
  },
  {
    name: 'an export that is never finalised',
    expects: 'events',
    plant: said(({ target }) => target?.operation === 'finalize', drop),
  },
  {
    name: 'a promotion without its event',
    expects: 'events',
    plant: said(({ action_type }) => action_type === 'promotion', drop),
  },
  { name: 'a vote that is not recorded', expects: 'events', plant: said(isVote, drop) },
  {
    name: 'an event of another request',
    expects: 'events',
    plant: said(
      ({ action_type }) => action_type === 'tool_call',
      () => ({ request_hash_sha256: 'e'.repeat(64) }),
    ),
  },
  {
    name: 'a failure that is recorded as a success',
    expects: 'events',
    plant: said(
      (event) => event.outcome === 'failure' && event.action_type === 'db_write',
      () => ({ outcome: 'success' }),
    ),
  },
  {
    name: 'a second reply to one proposal',
    expects: 'events',
    plant: again(
      ({ replies }) => replies.length > 0,
      ({ replies }) => ({ replies: [...replies, ...replies] }),
    ),
  },
  {
    name: 'an approval without a vote',
    expects: 'approvals',
    plant: votes(({ authz }) => ({
      authz: { decision: 'deny', rule_id: authz === undefined ? '' : 'approval.expired' },
    })),
  },
  {
    name: 'an approval by an agent',
    expects: 'approvals',
    plant: votes(({ actor }) => ({ actor: { ...actor, actor_type: 'agent' } })),
  },
  {
    name: 'an approval of another request',
    expects: 'approvals',
    plant: votes(() => ({ request_hash_sha256: 'd'.repeat(64) })),
  },
  {
    name: 'an approval that had expired',
    expects: 'approvals',
    plant: votes(() => ({ timestamp_utc: '2025-12-01T00:00:00.000Z' })),
  },
  {
    name: 'an approval that was rejected later',
    expects: 'approvals',
    plant: votes(() => ({ outcome: 'deny', authz: { decision: 'deny', rule_id: 'approval.rejected' } })),
  },
  {
    name: 'a run that has forgotten what its agent had read',
    expects: 'labels',
    plant: born(
      ({ label }) => (label?.cases.length ?? 0) > 0,
      () => ({ label: { cases: [], flags: [], many: false } }),
    ),
  },
  {
    name: 'a label of a read that did not happen',
    expects: 'labels',
    plant: born(mediated, ({ label }) => ({ label: { cases: ['case-9'], flags: label?.flags ?? [], many: false } })),
  },
  { name: 'a lookup into another case that was allowed', expects: 'labels', plant: grant('platform.cross_case') },
  { name: 'a write of shared knowledge that was allowed', expects: 'labels', plant: grant('platform.shared_write') },
  { name: 'a label that withheld nothing', expects: 'labels', plant: grant('platform.label_other_case') },
  { name: 'a lane that did not refuse a label', expects: 'labels', plant: grant('label.') },
  {
    name: 'an overlay that no request had',
    expects: 'overlay',
    plant: said(
      ({ authz }) => authz?.rule_id.startsWith('overlay.') === true,
      ({ authz }) => ({ outcome: 'allow', authz: { ...authz, decision: 'allow', rule_id: 'lane.granted' } }),
    ),
  },
  {
    name: 'an epoch that was not in force',
    expects: 'overlay',
    plant: said(
      ({ authz }) => authz?.policy_ref?.includes(' overlay@') === true,
      ({ authz }) => ({
        authz: { decision: authz?.decision ?? 'deny', rule_id: authz?.rule_id ?? '', policy_ref: 'overlay@999' },
      }),
    ),
  },
  { name: 'another attempt with another key', expects: 'effects', plant: otherKey },
  { name: 'what may have happened is done again', expects: 'effects', plant: doneAgain },
];

function grant(rule: string) {
  return said(
    ({ authz }) => authz?.rule_id.startsWith(rule) === true,
    ({ authz }) => ({ outcome: 'allow', authz: { ...authz, decision: 'allow', rule_id: 'lane.granted' } }),
  );
}

/** Swaps the last two ends of a turn: the parent's before the child's. */
function swapEnds(turns: readonly TurnRecord[]): readonly TurnRecord[] | null {
  const at = turns.findIndex(({ ended: ends }) =>
    ends.some(({ run_id }) => ends.some((other) => other.run_id.startsWith(`${run_id}.`))),
  );
  const turn = turns[at];
  if (turn === undefined) return null;
  const places = turn.entries.flatMap((entry, i) => (entry.type === 'audit_event' && ended(entry.body) ? [i] : []));
  const bodies = places.map((i) => turn.entries[i]).reverse();
  const entries = turn.entries.map((entry, i) => {
    const other = bodies[places.indexOf(i)];
    return other?.type === 'audit_event' && entry.type === 'audit_event' && places.includes(i)
      ? { ...entry, body: other.body }
      : entry;
  });
  return turns.map((own, i) => (i === at ? { ...own, entries, ended: [...own.ended].reverse() } : own));
}

function retriedForGood(turns: readonly TurnRecord[]): readonly TurnRecord[] | null {
  const retried = turns
    .flatMap(({ entries }) => entries)
    .find((entry) => entry.type === 'run_created' && entry.body.retry !== null);
  const of = retried?.type === 'run_created' ? retried.body.retry?.of : undefined;
  if (of === undefined) return null;
  return said(
    (event) => event.run_id === of && ended(event),
    ({ error }) => (error === undefined ? {} : { error: { ...error, retryable: false } }),
  )(turns);
}

function otherKey(turns: readonly TurnRecord[], { plot }: Played): readonly TurnRecord[] | null {
  const retry = turns
    .flatMap(({ entries }) => entries)
    .find((entry) => entry.type === 'run_created' && entry.body.retry !== null);
  const run_id = retry?.type === 'run_created' ? retry.body.run_id : null;
  if (run_id === null || plot.turns.length === 0) return null;
  let done = false as boolean;
  const changed = turns.map((turn) => ({
    ...turn,
    commands: turn.commands.map((command) => {
      if (command.kind !== 'perform' || !(command.run_id === run_id || command.run_id === `${run_id}.1`))
        return command;
      done = true;
      return { ...command, effect: { ...command.effect, idempotency_key: command.run_id } };
    }),
  }));
  return done ? changed : null;
}

/** The history with the bug in it; null if there is no place for it. */
export const withPlant = (plant: Plant, played: Played): readonly TurnRecord[] | null =>
  plant.plant(turnRecordsOf(played), played);
