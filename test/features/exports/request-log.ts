// The entries that request and approve an export, one at a time.

import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import type { Entry, StartRunInput, VoteInput } from '../../../src/core/contract/run/entry.js';
import { RequestInputs } from '../../../src/features/exports/verify/check-request.js';
import { content, created, treeId } from '../../fixtures/entries.js';

export const RUN = treeId(1);
export const VOTER = 'anna';
export const VOTED = '2026-02-03T04:05:06.007Z';

interface VoteEvent {
  readonly run_id: string;
  readonly actor_id: string;
  readonly time: string;
  readonly rule_id: string;
  readonly target: string;
}
/** The audit event of a counted vote for the request of the run. */
export const EXPORT_APPROVED: VoteEvent = {
  run_id: RUN,
  actor_id: VOTER,
  time: VOTED,
  rule_id: 'approval.accepted',
  target: 'approval',
};

export class RequestLog {
  readonly inputs = new RequestInputs();
  #seq = 0;

  start(run_kind: StartRunInput['run_kind']): void {
    const request = artifactRef(content('request', '{}'));
    this.#take('input', { kind: 'start_run', run_id: RUN, run_kind, request } as unknown as Entry['body']);
  }

  created(run_kind: string): void {
    const body = created(RUN, RUN).body({ tree_id: RUN, seq: 0 });
    this.#take('run_created', { ...body, run_kind } as Entry['body']);
  }

  vote(change: {
    readonly run_id?: string;
    readonly actor_id?: string;
    readonly time?: string;
    readonly decision?: VoteInput['decision'];
  }): void {
    const { run_id = RUN, actor_id = VOTER, time = VOTED, decision = 'approve' } = change;
    const approver = { actor: { actor_type: 'human', actor_id } };
    this.#take('input', { kind: 'vote', run_id, decision, approver, time } as unknown as Entry['body']);
  }

  event({ run_id, actor_id, time, rule_id, target }: VoteEvent): void {
    const event = {
      ...{ run_id, timestamp_utc: time, actor: { actor_type: 'human', actor_id } },
      ...{ target: { target_type: 'run', name: target }, authz: { rule_id } },
    } as unknown as AuditEvent;
    this.#take('audit_event', event);
  }

  #take(type: Entry['type'], body: Entry['body']): void {
    this.inputs.add({ type, tree_id: RUN, seq: (this.#seq += 1), prev: '0'.repeat(64), body } as Entry);
  }
}
