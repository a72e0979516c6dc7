// The memory of mediated runs without a machine, for tests of what they emit.

import type { MediatedMemory, MediatedRequest } from '../../machines/mediated-memory.js';
import type { MediatedOutcome } from '../../machines/run.js';
import type { AuditTarget } from '../../src/core/contract/run/audit-event.js';
import { PROMOTION, SHARED_WRITE } from '../fixtures/privileged.js';

export const PROMOTION_WRITE: AuditTarget = { target_type: 'table', name: 'shared_playbooks', operation: 'append' };

const REQUEST: MediatedRequest = {
  privileged: SHARED_WRITE,
  hash: 'b'.repeat(64),
  effect: {
    action: 'WRITE_RECORD',
    args: {},
    case_id: 'case_1',
    request_hash: 'b'.repeat(64),
    before: [],
    partial_outputs: false,
    limits: { read_bytes_max: 1, list_entries_max: 1 },
  },
  idempotency_key: null,
  in_commit: false,
  idempotent: false,
  inputs: [],
  written: null,
  retry: null,
  overlay: null,
};

const NO_OUTCOME: MediatedOutcome = { result: null, result_ref: null, cause: null, denied_by: null, at: null };

interface Changes extends Partial<Omit<MediatedMemory, 'request' | 'done'>> {
  readonly request?: Partial<MediatedRequest>;
  readonly done?: Partial<MediatedOutcome>;
}

/** A promotion, with members of its memory replaced. */
export const mediatedMemory = ({ request, done, ...over }: Changes = {}): MediatedMemory => ({
  run: PROMOTION,
  end: null,
  request: { ...REQUEST, ...request },
  done: { ...NO_OUTCOME, ...done },
  approval: null,
  verdict: null,
  ...over,
});
