// Golden histories: ledgers that earlier versions have recorded. They are never edited and never recorded again, and
// the current machines replay them as recorded.

import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../root.js';

const FOLDER = 'test/fixtures/histories';
const BYTES_MAX = 300_000;

/** By subject: histories with behaviour flags, and how the runs of one kind ended in them. */
const FLAGGED = {
  // Flag 4, made by make-withheld-exports.mjs.
  'withheld-exports': {
    sha256: '6c94a247a1b024d3a244233fe306c6cf17e682d698a5453fda0b075b92d0496e',
    of: 'export',
    endings: ['denied:export.content_withheld', 'denied:export.not_approved', 'completed'],
  },
} as const;

let folder: string;
beforeEach(() => {
  folder = tempFolder('golden');
  mkdirSync(join(folder, 'artifacts'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const packed = (history: string): string => join(ROOT, FOLDER, `${history}.db.gz`);

function unpacked(history: string): { file: string; artifactsDir: string } {
  const file = join(folder, 'ledger.db');
  writeFileSync(file, gunzipSync(readFileSync(packed(history))));
  const keys = join(ROOT, FOLDER, `${history}.keys.json`);
  if (existsSync(keys)) {
    const texts = JSON.parse(readFileSync(keys, 'utf8')) as Record<string, string>;
    mkdirSync(join(folder, 'keys/cases'), { recursive: true });
    for (const [name, text] of Object.entries(texts))
      writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  }
  return { file, artifactsDir: join(folder, 'artifacts') };
}

async function read<T>(history: string, readOnly: boolean, work: (reader: LedgerReader) => Promise<T>): Promise<T> {
  const store = openSqliteStore({ ...unpacked(history), readOnly });
  try {
    if (!readOnly) await store.acquire();
    return await work(new LedgerReader(store, memoryHeadStore(await store.head())));
  } finally {
    await store.close();
  }
}

describe.each(Object.entries(FLAGGED))('the golden history of %s', (name, golden) => {
  test('U-06: is small, has its original bytes, and replays as recorded', async () => {
    expect(statSync(packed(name)).size).toBeLessThan(BYTES_MAX);
    expect(sha256(readFileSync(packed(name)))).toBe(golden.sha256);
    const report = await read(name, true, (reader) => reader.replay());
    expect(report).toMatchObject({ ok: true, difference: null });
    expect(report.not_recomputed).toBeUndefined();
    expect(await read(name, true, (reader) => reader.verify())).toMatchObject({ ok: true });
    const state = await read(name, true, (reader) => reader.stateAt({ until: report.entries - 1 }));
    const endings = state.runs.flatMap(({ kind, reason }) => (kind === golden.of ? [reason] : []));
    expect(endings).toEqual(golden.endings);
  });
});
