// The lifecycle of the contract held against what a ledger says happened, without asking the machines: a second
// opinion, written from S4 §3 and §6 alone.

import type { ActionType, AuditEvent } from '../contract/audit-event.js';
import type { Entry } from '../contract/entry.js';
import { isTerminal, RUN_STATES, type RunKind, type RunState } from '../contract/run-state.js';

/** S4 §3, as a literal. */
const EDGES: Readonly<Record<RunState, readonly RunState[]>> = {
  created: ['running', 'denied', 'cancelled'],
  running: ['completed', 'failed', 'denied', 'cancelled'],
  completed: [],
  failed: [],
  denied: [],
  cancelled: [],
};

/** The event that a run of this kind must have when its act was done (S4 §6). */
const ACTS: Partial<Record<RunKind, ActionType>> = {
  tool_gateway: 'tool_call',
  db_write: 'db_write',
  db_read: 'db_read',
  promotion: 'promotion',
  export: 'export',
};

interface Life {
  readonly kind: RunKind;
  readonly state: RunState;
  readonly acted: boolean;
  readonly judged: 'allow' | 'deny' | null;
}

/** Everything in which the runs of these entries broke the lifecycle; empty when they kept it. */
export function lifecycleFaults(entries: readonly Entry[]): readonly string[] {
  const lives = new Map<string, Life>();
  const faults: string[] = [];
  for (const entry of entries) {
    if (entry.type === 'run_created') {
      if (lives.has(entry.body.run_id)) faults.push(`${entry.body.run_id} was created twice`);
      lives.set(entry.body.run_id, { kind: entry.body.run_kind, state: 'created', judged: null, acted: false });
    }
    if (entry.type !== 'audit_event') continue;
    const { run_id } = entry.body;
    const life = lives.get(run_id);
    if (life === undefined) faults.push(`${entry.body.event_id}: ${run_id} has an event but was not created`);
    else lives.set(run_id, live(life, entry.body, faults));
  }
  for (const [run_id, { state }] of lives) if (!isTerminal(state)) faults.push(`${run_id} is still ${state}`);
  return faults;
}

function live(life: Life, event: AuditEvent, faults: string[]): Life {
  const at = `${event.event_id}: ${event.run_id}`;
  if (speaksOnly(event)) return life;
  if (isTerminal(life.state)) faults.push(`${at} is ${life.state} and still has an event`);
  if (event.action_type === 'authz_decision') {
    // A run that waits for people is judged again when they have answered (D7).
    const waits = event.authz?.rule_id === 'approval.required' && event.outcome === 'allow';
    if (life.judged !== null) faults.push(`${at} was judged twice`);
    if (waits) return life;
    return { ...life, judged: event.outcome === 'allow' ? 'allow' : 'deny' };
  }
  if (event.action_type !== 'system') {
    if (life.state !== 'running') faults.push(`${at} acted (${event.action_type}) while it was ${life.state}`);
    return { ...life, acted: life.acted || event.action_type === ACTS[life.kind] };
  }
  const next = stateOf(event.outcome_reason ?? '');
  if (next === null) {
    faults.push(`${at}: ${event.outcome_reason ?? 'no reason'} is no state`);
    return life;
  }
  if (!EDGES[life.state].includes(next)) faults.push(`${at} went from ${life.state} to ${next}`);
  if (next === 'running' && life.judged !== 'allow') faults.push(`${at} runs without an allow`);
  if (next === 'denied' && life.state === 'created' && life.judged !== 'deny')
    faults.push(`${at} was denied by nobody`);
  if (next === 'completed' && ACTS[life.kind] !== undefined && !life.acted) {
    faults.push(`${at} is completed without its ${ACTS[life.kind] ?? ''} event`);
  }
  return { ...life, state: next };
}

/** What is said about a run and neither judges nor moves it: refusals, people's answers, outcomes found out later. */
const speaksOnly = ({ action_type, outcome_reason = '', target }: AuditEvent): boolean =>
  outcome_reason === 'INVALID_STATE_TRANSITION' ||
  outcome_reason.startsWith('OUTCOME_RESOLVED:') ||
  (action_type === 'authz_decision' && target?.target_type === 'system' && target.name === 'approval');

const stateOf = (reason: string): RunState | null =>
  RUN_STATES.find((state) => reason === state || reason.startsWith(`${state}:`)) ?? null;
