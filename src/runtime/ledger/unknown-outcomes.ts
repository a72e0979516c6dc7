import type { Entry } from '../../contract/run/entry.js';
import { OUTCOME_RESOLVED, type RunState } from '../../contract/run/run-state.js';

/** D8: what somebody has found out of an act whose outcome was unknown. */
export interface Settlement {
  readonly outcome: 'done' | 'not_executed';
  readonly actor_id: string;
  readonly role_id: string;
  readonly at: string;
  readonly note: string | null;
}

/** Acts of one tree of which nobody knew, when their run ended, whether they had happened. */
export class UnknownOutcomes {
  readonly #settlements = new Map<string, Settlement | null>();

  /** Takes entries in ledger order. `stateOf` says where a run stands before this one. */
  fold(entry: Entry, stateOf: (run_id: string) => RunState | null): void {
    if (entry.type === 'input') {
      const { body } = entry;
      if (body.kind !== 'result' || body.status !== 'unknown') return;
      // A result for a run that has ended already is refused, and tells nothing.
      if (stateOf(body.run_id) === 'running') this.#settlements.set(body.run_id, null);
    }
    if (entry.type !== 'audit_event' || !this.#settlements.has(entry.body.run_id)) return;
    const { run_id, outcome_reason = '', actor, role_id = '', timestamp_utc, notes = null } = entry.body;
    if (!outcome_reason.startsWith(OUTCOME_RESOLVED)) return;
    const outcome = outcome_reason === `${OUTCOME_RESOLVED}done` ? 'done' : 'not_executed';
    this.#settlements.set(run_id, { outcome, actor_id: actor.actor_id, role_id, at: timestamp_utc, note: notes });
  }

  /** By run: how it was settled, or null where it has not been. */
  get all(): ReadonlyMap<string, Settlement | null> {
    return this.#settlements;
  }
}
