// Entries as rows of a list: the rows of recorded ledgers, with every type of entry.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { integratedLog } from '../../../../src/runtime/ledger/integrated-log.js';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSqliteStore } from '../../../../src/stores/sqlite/sqlite-ledger-store.js';
import { type Entry } from '../../../../src/core/contract/run/entry.js';
import { ENTRY_TYPES } from '../../../fixtures/features.js';
import { packRows, toEventRow, unpackRows } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type { EventRow } from '../../../../src/core/contract/inspection/inspection.js';
import { RUN_STATES, type RunState } from '../../../../src/core/contract/run/run-context.js';
import type { LedgerStore, StoredEntry } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { stateAt } from '../../../../src/kernel/replay/state-at.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { ROOT } from '../../../root.js';

const GOLDEN = join(ROOT, 'test/fixtures/histories');
const folder = tempFolder('rows');
let store: LedgerStore;
const stored: StoredEntry[] = [];
let rows: EventRow[];

beforeAll(async () => {
  const file = join(folder, 'ledger.db');
  writeFileSync(file, gunzipSync(readFileSync(join(GOLDEN, 'everything.db.gz'))));
  const keys = JSON.parse(readFileSync(join(GOLDEN, 'everything.keys.json'), 'utf8')) as Record<string, string>;
  mkdirSync(join(folder, 'keys/cases'), { recursive: true });
  for (const [name, text] of Object.entries(keys))
    writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  expect(existsSync(file)).toBe(true);
  store = openSqliteStore({ file, artifactsDir: join(folder, 'artifacts'), readOnly: true });
  for await (const entry of store.log()) stored.push(entry);
  rows = stored.map(({ text, log_index, leaf_hash }) => toEventRow(text, log_index, leaf_hash));
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const entryAt = (log_index: number): Entry => JSON.parse(stored[log_index]!.text) as Entry;

describe('the row of an entry', () => {
  test('U-05: exists for every type of entry, with its place, its time and a label', () => {
    expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(ENTRY_TYPES));
    for (const [n, row] of rows.entries()) {
      const { seq, tree_id, type } = entryAt(n);
      expect(row).toMatchObject({ log_index: n, seq, tree_id, type, hash: stored[n]!.leaf_hash.slice(0, 8) });
      expect(new Date(row.time).toISOString()).toMatch(/^20\d\d-/);
      expect(row.label).toMatch(/^[\w.: -]+$/);
      expect(row.run_id).toMatch(/^(?:run|ses)_/);
      expect(row.creation === null).toBe(type !== 'run_created');
    }
  });

  test('describes the event in words of the contract', () => {
    const labels = new Set(rows.map(({ type, label, tone }) => `${type}: ${label} (${tone})`));
    expect([...labels]).toEqual(
      expect.arrayContaining([
        'input: proposal (plain)',
        'input: result done (plain)',
        'input: vote approve (plain)',
        'input: session next (plain)',
        'run_created: created (created)',
        'audit_event: authz allow (allow)',
        'audit_event: authz deny (deny)',
        'audit_event: running (running)',
        'audit_event: completed:finished (completed)',
        'audit_event: tool_call success (plain)',
        'step_trace: SUCCESS (SUCCESS)',
        'step_trace: DENIED (DENIED)',
        'session_event: step_issued (plain)',
      ]),
    );
  });

  test('S4-20: has the state of the run: the last one is its current state', async () => {
    const last = new Map<string, RunState>();
    for (const { run_id, state } of rows) if (state !== null) last.set(run_id, state);
    const { runs } = await stateAt(integratedLog(store), null, { until: stored.length - 1 });
    expect(runs.length).toBeGreaterThan(20);
    expect(Object.fromEntries(last)).toEqual(Object.fromEntries(runs.map(({ run_id, state }) => [run_id, state])));
  });

  test('has every constant fact of a run', () => {
    const agent = rows.find(({ creation: born }) => born?.kind === 'agent');
    const { body } = entryAt(agent!.log_index) as Extract<Entry, { type: 'run_created' }>;
    expect(agent?.creation).toMatchObject({
      parent: body.parent_run_id,
      lane: body.lane_id,
      role: body.role_id,
      actor: body.actor.actor_id,
      case: body.case_id,
      pins: { contract: 'v1', lanes: body.policy_versions.lanes, roles: body.policy_versions.roles },
    });
    expect(rows.find(({ creation: born }) => born?.kind === 'tool_gateway')?.creation?.request).toMatch(/^\w+\.\w+$/);
  });

  test("does not use a caller's reason as a label", () => {
    const { text } = stored.find((entry) => entry.text.includes('"outcome_reason":"completed:finished"'))!;
    const cancelled = text.replace('completed:finished', 'cancelled:because\u202e I <b>say</b> so');
    expect(toEventRow(cancelled, 3, 'ab')).toMatchObject({ label: 'cancelled', tone: 'cancelled', state: 'cancelled' });
  });

  test('exists for a malformed entry too, and never throws', () => {
    for (const { text, leaf_hash } of stored.slice(0, 60)) {
      const { body, ...entry } = JSON.parse(text) as Entry;
      const spoilt = [
        '',
        'null',
        '[]',
        text.slice(1),
        JSON.stringify({ ...entry, body: null }),
        JSON.stringify({ ...entry, body: {} }),
        JSON.stringify({ ...entry, body: { ...body, run_id: 7, outcome_reason: [], policy_versions: null } }),
        JSON.stringify({ ...entry, type: 'toString', body }),
        JSON.stringify({ ...entry, seq: 'x', body }),
      ];
      for (const each of spoilt) {
        const row = toEventRow(each, 5, leaf_hash);
        expect(row.log_index).toBe(5);
        expect(Number.isSafeInteger(row.time)).toBe(true);
        expect(row.state === null || RUN_STATES.includes(row.state)).toBe(true);
      }
    }
    expect(toEventRow('{', 5, 'ab')).toMatchObject({ label: 'unreadable', tone: 'plain', hash: 'ab' });
  });
});

describe('a page of rows', () => {
  test('has the rows that were put into it, from any start', () => {
    for (const part of [rows, rows.slice(40, 90), rows.slice(-1), []])
      expect(unpackRows(JSON.parse(JSON.stringify(packRows(part))) as ReturnType<typeof packRows>)).toEqual(part);
  });

  test('takes a third of the space of single rows', () => {
    const length = (value: unknown): number => JSON.stringify(value).length;
    const plain = rows.filter(({ creation: born }) => born === null).map((row, log_index) => ({ ...row, log_index }));
    expect(length(packRows(plain))).toBeLessThan(length(plain) / 3);
  });
});
