import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { RunRecord } from '../../../src/core/contract/run/run-record.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { RunRecords } from '../../../src/runtime/ledger/run-records.js';
import { randomTree, SECRET } from '../../fixtures/random-tree.js';
import { AGENT, CASE, TREE, TreeDriver } from '../../fixtures/tree.js';

const recordsOf = (entries: readonly Entry[]): RunRecords => {
  const records = new RunRecords();
  for (const entry of entries) records.fold(entry);
  return records;
};
const recordsIn = (d: TreeDriver): RunRecords => recordsOf(d.entries.map(({ entry }) => entry));

const WRITE = { path: '/sandbox/a.txt', content: 'hello' };

test('S4-08 S4-43 S4-58 S4-60 S4-61: the record of a write has its status, pins, input and output artifacts, and times', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', WRITE);
  d.wait(2_000).done(`${AGENT}.1.1`, { bytes_written: 5 });
  const [payload] = d.inputs[2]!.materials;
  const written = d.audit(`${AGENT}.1.1`).find(({ action_type }) => action_type === 'db_write')!;
  expect(recordsIn(d).get(`${AGENT}.1.1`)).toEqual({
    schema_version: '1.1.0',
    run_id: `${AGENT}.1.1`,
    run_kind: 'db_write',
    run_name: 'sandbox_files',
    contract_version: 'v1',
    policy_versions: d.created(TREE).policy_versions,
    status: 'completed',
    outcome: 'completed',
    created_at_utc: '2026-01-01T00:00:04.000Z',
    started_at_utc: '2026-01-01T00:00:04.000Z',
    completed_at_utc: '2026-01-01T00:00:07.000Z',
    duration_ms: 3_000,
    parent_run_id: `${AGENT}.1`,
    root_run_id: TREE,
    correlation_id: 'cor_test',
    case_id: CASE,
    actor: { actor_type: 'agent', actor_id: 'tester', role_id: 'SANDBOX_AGENT', lane_id: 'SANDBOX_FILES' },
    inputs: {
      artifact_refs: [expect.objectContaining({ artifact_kind: 'raw_payload', byte_size: payload!.bytes.byteLength })],
      parameters_hash_sha256: written.request_hash_sha256,
    },
    outputs: { artifact_refs: written.output_artifacts },
    nondeterminism: { is_nondeterministic: false, reasons: [], replay_strategy: 'record_and_replay' },
    audit: { audit_event_ids: d.audit(`${AGENT}.1.1`).map(({ event_id }) => event_id) },
  });
});

describe('S4-20: the status of a record is the state of its run', () => {
  test('at every point of its lifecycle', () => {
    const d = new TreeDriver().ready();
    expect(recordsIn(d).get(AGENT)).toMatchObject({ status: 'running' });
    expect(recordsOf(d.decisions[1]!.entries.slice(0, 2).map(({ entry }) => entry)).get(AGENT)).toMatchObject({
      status: 'created',
      audit: { audit_event_ids: [] },
    });
    d.act('DELETE_FILE', { path: '/sandbox/a.sh' });
    d.act('WRITE_FILE', WRITE);
    d.failed(`${AGENT}.2.1`, 'NO_SPACE');
    d.cancel();
    expect(
      Object.fromEntries(
        recordsIn(d)
          .all()
          .map(({ run_id, status, outcome }) => [run_id, [status, outcome]]),
      ),
    ).toEqual({
      [TREE]: ['cancelled', 'cancelled:by_caller'],
      [AGENT]: ['cancelled', 'cancelled:by_caller'],
      [`${AGENT}.1`]: ['denied', 'denied:extension.not_allowed'],
      [`${AGENT}.2`]: ['failed', 'failed:NO_SPACE'],
      [`${AGENT}.2.1`]: ['failed', 'failed:NO_SPACE'],
    });
  });

  test('S4-63 S4-64: the record of a failed run has its error', () => {
    const d = new TreeDriver().ready();
    d.send({ kind: 'interrupt', run_id: AGENT });
    expect(recordsIn(d).get(AGENT)).toMatchObject({
      status: 'failed',
      error: { error_code: 'INTERRUPTED', retryable: true },
    });
  });
});

test('S4-24 C50: a rejected input after the end of a run is counted among its events and changes nothing else', () => {
  const d = new TreeDriver().ready();
  d.act('FINISH', { response: '' });
  const before = recordsIn(d).get(AGENT)!;
  d.cancel(AGENT);
  d.send({ kind: 'end', run_id: AGENT });
  const after = recordsIn(d).get(AGENT)!;
  expect(after).toEqual({ ...before, audit: after.audit });
  expect([before, after].map(({ audit }) => audit.audit_event_ids.length)).toEqual([3, 5]);
});

test('S4-30: the record has the taxonomy versions, and the pins of a run that was denied without one', () => {
  const d = new TreeDriver();
  d.open({ taxonomy_versions: { coa: '7' }, problems: { lanes: 'dirty' } });
  expect(recordsIn(d).get(TREE)).toMatchObject({
    status: 'denied',
    taxonomy_versions: { coa: '7' },
    policy_versions: { lanes: 'UNPINNED' },
  });
});

describe('over 200 random trees', () => {
  const trees = Array.from({ length: 200 }, (_, i) => randomTree(5_001 + i, { close: i % 2 === 0 }));

  test('S4-01 S4-02 S4-03 S4-08: every run has one record, in the order of creation, that conforms to the schema', () => {
    for (const d of trees) {
      const records = recordsIn(d).all();
      expect(records.map(({ run_id }) => run_id)).toEqual(d.bodies('run_created').map(({ run_id }) => run_id));
      expect(records.filter((record) => !isConforming(RunRecord, record))).toEqual([]);
    }
  });

  test('S4-46 S4-20: a record is ended or live like its run', () => {
    for (const d of trees) {
      for (const { run_id, status, outcome } of recordsIn(d).all()) {
        const [state, ...reason] = (d.endings[run_id] ?? 'running').split(':');
        expect(status).toBe(state);
        if (state === 'running') expect(d.tree.isLive(run_id)).toBe(true);
        else expect(outcome).toBe([state, ...reason.filter((part) => part !== state)].join(':'));
      }
    }
  });

  test('S4-06 S4-62: a record names its events and contains no raw text', () => {
    for (const d of trees) {
      for (const record of recordsIn(d).all()) {
        expect(record.audit.audit_event_ids).toEqual(d.audit(record.run_id).map(({ event_id }) => event_id));
        expect(JSON.stringify(record)).not.toContain(SECRET);
      }
    }
  });
});

test('a record names ten thousand events at most', () => {
  const d = new TreeDriver().ready();
  const [refusal] = d.cancel('run_nobody').entries.slice(-1);
  const records = recordsIn(d);
  for (let i = 0; i < 9_996; i += 1) records.fold(refusal!.entry);
  expect(records.get(TREE)?.audit.audit_event_ids).toHaveLength(9_999);
  records.fold(refusal!.entry);
  records.fold(refusal!.entry);
  expect(records.get(TREE)?.audit.audit_event_ids).toHaveLength(10_000);
});

test('an event of a run that was never created makes no record', () => {
  const d = new TreeDriver().ready();
  const records = recordsOf(d.entries.map(({ entry }) => entry).filter(({ type }) => type !== 'run_created'));
  expect(records.all()).toEqual([]);
  expect(records.get(AGENT)).toBeNull();
});

test('to fold an event takes no longer the more artifacts its run has', () => {
  const d = new TreeDriver().ready();
  const [refusal] = d.cancel('run_nobody').entries.slice(-1);
  const entry = refusal!.entry as Entry & { type: 'audit_event' };
  const records = recordsIn(d);
  let reads = 0;
  const ref = (index: number) => ({
    artifact_kind: 'raw_payload',
    hash_sha256: '',
    byte_size: 0,
    get artifact_id() {
      reads += 1;
      return `art_${index}`;
    },
  });
  const count = 2_000;
  // Each artifact comes twice, and a record has it once.
  for (let index = 0; index < 2 * count; index += 1) {
    const output_artifacts = [ref(index % count)] as never;
    records.fold({ ...entry, body: { ...entry.body, output_artifacts } });
  }
  expect(reads).toBeLessThan(count * 10);
  expect(records.get(TREE)?.outputs.artifact_refs).toHaveLength(count);
});

test('a record is the same text at every entry, whether it is folded further or was loaded again', () => {
  for (let seed = 5_001; seed < 5_041; seed += 1) {
    const records = new RunRecords();
    for (const { entry } of randomTree(seed, { close: true }).entries) {
      const again = new RunRecords();
      for (const record of records.all()) again.resume(JSON.parse(JSON.stringify(record)) as RunRecord);
      records.fold(entry);
      again.fold(entry);
      expect(JSON.stringify(again.all())).toBe(JSON.stringify(records.all()));
      expect(records.all().map(({ run_id, status }) => [run_id, status])).toEqual(
        records.all().map(({ run_id }) => [run_id, records.statusOf(run_id)]),
      );
    }
  }
});

test('a record that was given out does not change with later events', () => {
  const d = new TreeDriver().ready();
  const [refusal] = d.cancel('run_nobody').entries.slice(-1);
  const records = recordsIn(d);
  const given = records.get(TREE);
  const text = JSON.stringify(given);
  records.fold(refusal!.entry);
  expect(JSON.stringify(given)).toBe(text);
  expect(JSON.stringify(records.get(TREE))).not.toBe(text);
});
