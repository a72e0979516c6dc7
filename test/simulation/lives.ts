// The lifecycle of every run as its entries record it, compared with the tables of S4 §3 and §6, which are literals
// here.

import type { AuditEvent } from '../../src/core/contract/run/audit-event.js';
import type { RunCreated } from '../../src/core/contract/run/entry.js';
import { isTerminal, RUN_STATES, type RunKind, type RunState } from '../../src/core/contract/run/run-context.js';
import type { History } from './history.js';

const EDGES: Readonly<Record<RunState, readonly RunState[]>> = {
  created: ['running', 'denied', 'cancelled'],
  running: ['completed', 'failed', 'denied', 'cancelled'],
  completed: [],
  failed: [],
  denied: [],
  cancelled: [],
};
const PARENTS: Partial<Record<RunKind, readonly RunKind[]>> = {
  orchestrator: [],
  agent: ['orchestrator'],
  tool_gateway: ['agent'],
  db_write: ['tool_gateway'],
};
/** The event that a run of this kind has before it ends, unless it was denied. */
const ACTS: Partial<Record<RunKind, AuditEvent['action_type']>> = { tool_gateway: 'tool_call', db_write: 'db_write' };

export interface Life {
  readonly created: RunCreated;
  state: RunState;
  /** The reason in its terminal event, after the state. */
  reason: string;
  judged: 'allow' | 'deny' | null;
  acted: boolean;
  readonly living: Set<string>;
  readonly inherited: string;
}

export class Lives {
  readonly #history: History;
  readonly #lives = new Map<string, Life>();
  /** Agent runs that have not ended, in the order of their creation. */
  readonly agents = new Set<string>();

  constructor(history: History) {
    this.#history = history;
  }

  get(run_id: string): Life | undefined {
    return this.#lives.get(run_id);
  }

  created(body: RunCreated): void {
    const { run_id, parent_run_id, run_kind } = body;
    if (this.#lives.has(run_id)) this.#history.report('terminal.immutable', `${run_id} was created twice`);
    const parent = parent_run_id === null ? undefined : this.#lives.get(parent_run_id);
    const inherited = inheritedOf(body);
    if (parent === undefined) {
      const isRoot = run_kind === 'orchestrator' && parent_run_id === null && body.root_run_id === run_id;
      if (!isRoot) this.#history.report('run.inherits', `${run_id} has no parent`);
    } else {
      this.#childOf(parent, body, inherited);
    }
    const life: Life = {
      created: body,
      state: 'created',
      reason: '',
      judged: null,
      acted: false,
      living: new Set(),
      inherited,
    };
    this.#lives.set(run_id, life);
    if (run_kind === 'agent') this.agents.add(run_id);
  }

  #childOf(parent: Life, body: RunCreated, inherited: string): void {
    const { run_id, run_kind } = body;
    const above = parent.created;
    parent.living.add(run_id);
    if (isTerminal(parent.state)) this.#history.report('terminal.immutable', `${run_id} was born to an ended run`);
    if (parent.state === 'created') this.#history.report('events.required', `${run_id}: its parent is not running`);
    if (PARENTS[run_kind]?.includes(above.run_kind) !== true) {
      this.#history.report('run.inherits', `${run_id} (${run_kind}) is a child of a run of kind ${above.run_kind}`);
    }
    if (inherited !== parent.inherited) {
      this.#history.report('run.inherits', `${run_id} has ${inherited}, its parent ${parent.inherited}`);
    }
  }

  /** An audit event of a run. Refusals change no state, and may occur at any time (C50). */
  event(event: AuditEvent): void {
    const { run_id, event_id, action_type } = event;
    const life = this.#lives.get(run_id);
    if (life === undefined) {
      this.#history.report('events.required', `${event_id}: ${run_id} was not created`);
      return;
    }
    this.#frame(life, event);
    if (event.outcome_reason === 'INVALID_STATE_TRANSITION') return;
    if (isTerminal(life.state)) {
      this.#history.report(
        'terminal.immutable',
        `${event_id}: ${run_id} is ${life.state} and still has ${action_type}`,
      );
    }
    if (action_type === 'authz_decision') this.#judged(life, event);
    else if (action_type === 'system') this.#moved(life, event);
    else this.#acted(life, event);
  }

  #frame(life: Life, event: AuditEvent): void {
    const { created } = life;
    const named = JSON.stringify([
      event.root_run_id,
      event.parent_run_id ?? null,
      event.correlation_id,
      event.contract_version,
      event.policy_versions,
      event.case_id ?? null,
      event.lane_id ?? null,
    ]);
    const known = JSON.stringify([
      created.root_run_id,
      created.parent_run_id,
      created.correlation_id,
      created.contract_version,
      created.policy_versions,
      created.case_id,
      created.lane_id,
    ]);
    if (named !== known) this.#history.report('run.inherits', `${event.event_id} says ${named}, its run ${known}`);
  }

  #judged(life: Life, event: AuditEvent): void {
    if (life.judged !== null || life.state !== 'created') {
      this.#history.report('events.required', `${event.event_id}: ${event.run_id} was judged while ${life.state}`);
    }
    life.judged = event.outcome === 'allow' ? 'allow' : 'deny';
  }

  #acted(life: Life, event: AuditEvent): void {
    if (life.state !== 'running' || ACTS[life.created.run_kind] !== event.action_type || life.acted) {
      const { event_id, run_id, action_type } = event;
      this.#history.report('events.required', `${event_id}: ${run_id} (${life.state}) has a ${action_type} event`);
    }
    life.acted = true;
  }

  #moved(life: Life, event: AuditEvent): void {
    const { run_id, event_id } = event;
    const [word = '', ...rest] = (event.outcome_reason ?? '').split(':');
    const next = RUN_STATES.find((state) => state === word);
    const missing = (what: string): void => {
      this.#history.report('events.required', `${event_id}: ${run_id} ${what}`);
    };
    if (next === undefined || !EDGES[life.state].includes(next)) missing(`went from ${life.state} to ${word}`);
    if (next === 'running' && life.judged !== 'allow') missing('runs without an allow');
    if (next === 'denied' && life.state === 'created' && life.judged !== 'deny')
      missing('was denied without a decision');
    const act = ACTS[life.created.run_kind];
    if (next !== undefined && next !== 'running' && next !== 'denied' && act !== undefined && !life.acted) {
      missing(`is ${next} without its ${act} event`);
    }
    life.state = next ?? life.state;
    life.reason = rest.join(':') || word;
    if (!isTerminal(life.state)) return;
    if (life.living.size > 0) missing(`ended before ${[...life.living].join()}`);
    this.agents.delete(run_id);
    this.#lives.get(life.created.parent_run_id ?? '')?.living.delete(run_id);
  }
}

/** S4-56: the members that every run inherits from the root. */
const inheritedOf = (body: RunCreated): string =>
  JSON.stringify([
    body.root_run_id,
    body.correlation_id,
    body.contract_version,
    body.policy_versions,
    body.taxonomy_versions,
    body.case_id,
    body.scope,
  ]);
