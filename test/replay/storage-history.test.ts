// The golden history of the behaviour flags 1, 2 and 3 replays as recorded.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../src/adapters/memory/memory-head-store.js';
import { openSqliteStore } from '../../src/adapters/sqlite/sqlite-ledger-store.js';
import type { Entry } from '../../src/contract/run/entry.js';
import { sha256 } from '../../src/contract/hash.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const NAME = join(ROOT, 'test/fixtures/histories/storage-limits');
const GOLDEN = {
  sha256: 'f205801e4bbd03a94a3b471a7cf36bbf0a3541b177ab9bcaf7cf64bfc0f3049e',
  report: { trees: 4, entries: 148 },
};

let folder: string;
beforeEach(() => {
  folder = tempFolder('golden');
  mkdirSync(join(folder, 'artifacts'));
  mkdirSync(join(folder, 'keys/cases'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function read<T>(work: (reader: LedgerReader) => Promise<T>): Promise<T> {
  const file = join(folder, 'ledger.db');
  writeFileSync(file, gunzipSync(readFileSync(`${NAME}.db.gz`)));
  const keys = JSON.parse(readFileSync(`${NAME}.keys.json`, 'utf8')) as Record<string, string>;
  for (const [name, text] of Object.entries(keys))
    writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  const store = openSqliteStore({ file, artifactsDir: join(folder, 'artifacts'), readOnly: true });
  try {
    return await work(new LedgerReader(store, memoryHeadStore(await store.head())));
  } finally {
    await store.close();
  }
}

test('U-06: the history of storage limits is small, and has its original bytes', () => {
  expect(statSync(`${NAME}.db.gz`).size).toBeLessThan(100_000);
  expect(sha256(readFileSync(`${NAME}.db.gz`))).toBe(GOLDEN.sha256);
});

test('U-06 C80 C81 C82: replays and verifies as recorded', async () => {
  expect(await read((reader) => reader.replay())).toMatchObject({ ok: true, difference: null, ...GOLDEN.report });
  expect(await read((reader) => reader.verify())).toMatchObject({ ok: true });
});

test('U-06 C80 C81 C82: contains a prefix, reservations, a denial by them, and a run that its proposals have ended', async () => {
  const entries = await read(async (reader) => {
    const found: Entry[] = [];
    for await (const { text } of reader.log()) found.push(JSON.parse(text) as Entry);
    return found;
  });
  const inputs = entries.flatMap((entry) => (entry.type === 'input' ? [entry.body] : []));
  expect(inputs.filter((input) => input.kind === 'proposal' && input.prefix !== undefined)).toHaveLength(2);
  expect(inputs.filter((input) => input.kind === 'facts' && input.reserved !== undefined)).not.toEqual([]);
  const rules = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.rule_id] : []));
  expect(rules).toEqual(expect.arrayContaining(['quota.bytes', 'payload.bytes_max', 'payload.blank']));
  const reasons = entries.flatMap((entry) => (entry.type === 'audit_event' ? [entry.body.outcome_reason] : []));
  expect(reasons).toContain('failed:INVALID_PROPOSALS');
});
