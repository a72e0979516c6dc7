// Which inputs of a log count as the request and the approvals of an export, with the logs that a dishonest operator
// could make.

import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import type { Entry, StartRunInput, VoteInput } from '../../../src/core/contract/run/entry.js';
import { RequestInputs, checkRequest } from '../../../src/features/exports/verify/check-request.js';
import { content, created, treeId } from '../../fixtures/entries.js';
import { describe, expect, test } from '@jest/globals';
import { ExportBagFindings } from '../../../src/features/exports/verify/bag-report.js';
import type { BagUnderCheck } from '../../../src/features/exports/verify/read-bag-text.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';

const RUN = treeId(1);
const VOTER = 'anna';
const VOTED = '2026-02-03T04:05:06.007Z';

interface VoteEvent {
  readonly run_id: string;
  readonly actor_id: string;
  readonly time: string;
  readonly rule_id: string;
  readonly target: string;
}
/** The audit event of a counted vote for the request of the run. */
const EXPORT_APPROVED: VoteEvent = {
  run_id: RUN,
  actor_id: VOTER,
  time: VOTED,
  rule_id: 'approval.accepted',
  target: 'approval',
};

/** The entries that request and approve an export, one at a time. */
class RequestLog {
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

describe('S4-77: the request of an export run', () => {
  test('is the input that started an export at the root of its tree', () => {
    const log = new RequestLog();
    log.start('export');
    expect(log.inputs.startOf(RUN)).toBeNull();
    log.created('export');
    expect(log.inputs.startOf(RUN)).toMatchObject({ run_kind: 'export' });
  });

  test('is not the input that started a run of another kind', () => {
    const log = new RequestLog();
    log.created('export');
    log.start('promotion');
    expect(log.inputs.startOf(RUN)).toBeNull();
  });

  test('is missing for a run of another kind', () => {
    const log = new RequestLog();
    log.start('export');
    log.created('promotion');
    expect(log.inputs.startOf(RUN)).toBeNull();
  });
});

describe('S4-78: an approval', () => {
  const approved = (change: Parameters<RequestLog['vote']>[0], event = EXPORT_APPROVED): boolean => {
    const log = new RequestLog();
    log.vote(change);
    log.event(event);
    return log.inputs.isApproved(RUN, VOTER, VOTED);
  };

  test('is a vote for the request that the platform has counted', () => {
    expect(approved({})).toBe(true);
    expect(approved({}, { ...EXPORT_APPROVED, rule_id: 'approval.granted' })).toBe(true);
  });

  test.each([
    ['a vote against it', { decision: 'reject' }],
    ['a vote for the request of another run', { run_id: `${RUN}.1` }],
    ['a vote of another actor', { actor_id: 'berta' }],
    ['a vote at another time', { time: '2026-02-03T04:05:06.008Z' }],
  ] as const)('is not %s', (_what, change) => {
    expect(approved(change)).toBe(false);
  });

  test.each([
    ['that did not count', { rule_id: 'approval.expired' }],
    ['that counted for another run', { run_id: `${RUN}.1` }],
    ['that counted for another actor', { actor_id: 'berta' }],
    ['that counted at another time', { time: '2026-02-03T04:05:06.008Z' }],
    ['that an event of something else names', { target: 'export' }],
  ])('is not a vote %s', (_what, change) => {
    expect(approved({}, { ...EXPORT_APPROVED, ...change })).toBe(false);
  });

  test('is distinguished from another whose names concatenate to the same text', () => {
    const log = new RequestLog();
    log.vote({ actor_id: 'anna 1' });
    log.event({ ...EXPORT_APPROVED, actor_id: 'anna 1' });
    expect(log.inputs.isApproved(`${RUN} anna`, '1', VOTED)).toBe(false);
    expect(log.inputs.isApproved(RUN, 'anna 1', VOTED)).toBe(true);
  });
});

test("a request that exceeds the parser's limit is rejected before it is read", async () => {
  const log = new RequestLog();
  log.start('export');
  log.created('export');
  const path = `data/artifacts/${log.inputs.startOf(RUN)!.request.hash_sha256}`;
  const record = { path, bytes: EXPORT_BAG_LIMITS.manifest_bytes_max + 1, expected: { sha256: 'f'.repeat(64) } };
  const findings = new ExportBagFindings(10);
  const tree = {
    read(): never {
      throw new Error('it was read');
    },
  };
  const info = [
    { label: 'Turnpike-Run-Id', value: RUN },
    { label: 'Turnpike-Root-Run-Id', value: RUN },
  ];
  const reading = { tree, files: new Map([[path, record]]), findings };
  await checkRequest({ reading, manifest: {}, info } as unknown as BagUnderCheck, log.inputs);
  expect(findings.list()).toContainEqual(expect.objectContaining({ rule_id: 'bundle.limit', path }));
});
