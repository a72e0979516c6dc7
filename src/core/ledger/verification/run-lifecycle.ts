// Checks the entries of one run against the lifecycle of the contract (S4 §3) and the required events (S4 §6). It does
// not use the machines: it is a second opinion, written from the contract alone.

import type { ActionType, AuditEvent } from '../../contract/run/audit-event.js';
import type { RunCreated } from '../../contract/run/entry.js';
import {
  isTerminal,
  isStatePreserving,
  RUN_STATES,
  type RunKind,
  type RunState,
} from '../../contract/run/run-context.js';
import type { LedgerFinding, LedgerRule } from './ledger-problem.js';

/** The lifecycle of S4 §3, as a literal. */
const EDGES: Readonly<Record<RunState, readonly RunState[]>> = {
  created: ['running', 'denied', 'cancelled'],
  running: ['completed', 'failed', 'denied', 'cancelled'],
  completed: [],
  failed: [],
  denied: [],
  cancelled: [],
};

/** The event of a run's action (S4-47 to S4-50, S4-79). */
const ACTS: Partial<Record<RunKind, ActionType>> = {
  tool_gateway: 'tool_call',
  db_write: 'db_write',
  db_read: 'db_read',
  promotion: 'promotion',
  export: 'export',
};
const EXPORT_EVENTS = 'authorize,assemble,finalize';

/** Whether an event neither decides nor changes the run: a rejection, an outcome determined later, an access. */
export const isRemark = ({ action_type, outcome_reason }: AuditEvent): boolean =>
  action_type === 'system' && isStatePreserving(outcome_reason);

/** Votes decide about a request, not about the run's own lifecycle. */
export const isVote = ({ action_type, target }: AuditEvent): boolean =>
  action_type === 'authz_decision' && target?.target_type === 'system' && target.name === 'approval';

/** The state that a system event leads to; null where it names none. */
const stateOf = (reason: string): RunState | null =>
  RUN_STATES.find((state) => reason === state || reason.startsWith(`${state}:`)) ?? null;

/** A proposal without a trace so far. */
export interface UntracedProposal {
  readonly payload: string;
  readonly time: string;
}

export class RunLifecycle {
  readonly run_id: string;
  readonly kind: RunKind;
  /** The run on whose behalf this run acts: its parent; for a retry, the parent of the first attempt. */
  readonly logicalParent: string | null;
  /** The values that its children and events must share (S4-54 to S4-57, S4-82). */
  readonly pins: string;
  readonly #context: string;
  readonly #actor: string;
  state: RunState = 'created';
  /** Null before the first decision. If approvers must vote, the run is decided again afterwards (D7). */
  verdict: 'waits' | 'allow' | 'deny' | null = null;
  /** Children that have not ended. */
  liveChildren = 0;
  untraced: UntracedProposal | null = null;
  steps = 0;
  readonly #acts: string[] = [];

  constructor(run: RunCreated) {
    this.run_id = run.run_id;
    this.kind = run.run_kind;
    this.logicalParent = run.retry?.logical_parent_run_id ?? run.parent_run_id;
    this.pins = JSON.stringify([run.contract_version, run.policy_versions, run.correlation_id, run.root_run_id]);
    this.#context = contextOf(run);
    this.#actor = JSON.stringify([run.actor, run.role_id]);
  }

  get isOver(): boolean {
    return isTerminal(this.state);
  }

  /** Checks an event of the run. @returns its findings */
  *take(event: AuditEvent): Iterable<LedgerFinding> {
    if (contextOf(event) !== this.#context)
      yield finding('run.context', `the context of ${event.event_id} differs from that of its run`);
    if (isRemark(event)) return;
    if (this.isOver) {
      yield finding('run.over', `${this.run_id} is ${this.state}, but has a later event ${event.action_type}`);
      return;
    }
    if (isVote(event)) return;
    if (JSON.stringify([event.actor, event.role_id]) !== this.#actor) {
      yield finding('run.context', `the actor of ${event.event_id} differs from that of its run`);
    }
    if (event.action_type === 'authz_decision') yield* this.#checkDecision(event);
    else if (event.action_type === 'system') yield* this.#checkTransition(event);
    else yield* this.#checkAct(event);
  }

  *#checkDecision({ authz, outcome }: AuditEvent): Iterable<LedgerFinding> {
    if (this.verdict === 'allow' || this.verdict === 'deny' || this.state !== 'created') {
      yield finding('run.judged_again', `${this.run_id} was decided twice`);
    }
    if (authz?.decision !== outcome)
      yield finding('run.context', `the outcome of the event does not match the decision about ${this.run_id}`);
    if (outcome !== 'allow') this.verdict = 'deny';
    else if (authz?.rule_id !== 'approval.required') this.verdict = 'allow';
    else if (this.verdict === null) this.verdict = 'waits';
    else yield finding('run.judged_again', `${this.run_id} waits for approval a second time`);
  }

  *#checkTransition({ event_id, outcome, outcome_reason = '', error }: AuditEvent): Iterable<LedgerFinding> {
    const next = stateOf(outcome_reason);
    const from = this.state;
    if (next === null) {
      yield finding('run.context', `${event_id} names no state`);
      return;
    }
    this.state = next;
    if (from === 'created' && (next === 'completed' || next === 'failed')) {
      yield finding('run.unstarted', `${this.run_id} is ${next}, but was never running`);
    } else if (!EDGES[from].includes(next)) {
      yield finding('run.over', `${this.run_id} went from ${from} to ${next}`);
    }
    yield* this.#checkGrounds(from, next);
    if (!this.isOver) return;
    if ((error !== undefined) !== (next === 'failed')) {
      yield finding('end.error', `${this.run_id} is ${next} with ${error === undefined ? 'no' : 'an'} error`);
    }
    if (outcome !== (next === 'completed' ? 'success' : next === 'denied' ? 'deny' : 'failure')) {
      yield finding('run.context', `${this.run_id} is ${next}, but its event has the outcome ${outcome}`);
    }
    yield* this.#checkActsAtEnd(from, next);
    if (this.liveChildren > 0) {
      yield finding('run.outlives', `${this.run_id} has ended, but ${this.liveChildren} of its children are live`);
    }
  }

  /** S4-44, S4-81: the decision that must precede the transition. */
  *#checkGrounds(from: RunState, next: RunState): Iterable<LedgerFinding> {
    if (from !== 'created') return;
    if (this.verdict === null && next !== 'cancelled') {
      yield finding('run.unjudged', `${this.run_id} is ${next}, but was never decided`);
    } else if (next === 'running' && this.verdict !== 'allow') {
      yield finding('run.unallowed', `${this.run_id} is running, but was not allowed`);
    } else if (next === 'denied' && this.verdict !== 'deny') {
      yield finding('run.undenied', `${this.run_id} is denied, but has no deny decision`);
    }
  }

  *#checkAct({ action_type, event_id, target }: AuditEvent): Iterable<LedgerFinding> {
    if (this.state !== 'running' || this.verdict !== 'allow') {
      yield finding('act.unallowed', `${event_id}: ${this.run_id} is ${this.state}, but has an event ${action_type}`);
    }
    if (action_type !== ACTS[this.kind])
      yield finding('act.extra', `${this.run_id} has an event ${action_type}, which its kind of run does not cause`);
    else if (this.#acts.push(target?.operation ?? '') > (this.kind === 'export' ? 3 : 1)) {
      yield finding('act.extra', `${this.run_id} has more than one event of its action`);
    }
  }

  *#checkActsAtEnd(from: RunState, next: RunState): Iterable<LedgerFinding> {
    const act = ACTS[this.kind];
    if (act === undefined || from !== 'running') return;
    if (this.kind === 'export' ? this.#acts.join() === EXPORT_EVENTS : this.#acts.length > 0) return;
    if (next !== 'denied') yield finding('act.missing', `${this.run_id} is ${next} without its ${act} event`);
  }
}

/** The values that an event shares with its run. The creation of a run has null where an event lacks the value. */
const contextOf = (source: RunCreated | AuditEvent): string =>
  JSON.stringify([
    source.contract_version,
    source.policy_versions,
    source.correlation_id,
    source.root_run_id,
    source.parent_run_id ?? null,
    source.case_id ?? null,
    source.lane_id ?? null,
    source.taxonomy_versions ?? null,
  ]);

export const finding = (rule: LedgerRule, message: string): LedgerFinding => ({ rule, message });
