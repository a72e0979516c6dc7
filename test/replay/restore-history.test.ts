// The golden history of behaviour flag 19: a ledger that was restored twice, and acknowledged each time.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { memoryHeadStore } from '../../src/adapters/memory/memory-head-store.js';
import { openSqliteStore } from '../../src/adapters/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../src/contract/hash.js';
import type { Entry } from '../../src/contract/run/entry.js';
import { readRestoreHistory, restoreTreeId } from '../../src/engine/suspension.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const SHA256 = 'abc41df9a7a79e229fcfd1d32f3133652109896b96f05af354fb61a61bc36fb6';
const packed = (end: string): string => join(ROOT, `test/fixtures/histories/restored.${end}`);

let folder: string;
beforeEach(() => {
  folder = tempFolder('golden');
  mkdirSync(join(folder, 'artifacts'));
  mkdirSync(join(folder, 'keys/cases'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the golden history restored', () => {
  test('U-06: is unmodified, replays as recorded, and contains what flag 19 records', async () => {
    expect(sha256(readFileSync(packed('db.gz')))).toBe(SHA256);
    const file = join(folder, 'ledger.db');
    writeFileSync(file, gunzipSync(readFileSync(packed('db.gz'))));
    const keys = JSON.parse(readFileSync(packed('keys.json'), 'utf8')) as Record<string, string>;
    for (const [name, text] of Object.entries(keys))
      writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
    const store = openSqliteStore({ file, artifactsDir: join(folder, 'artifacts'), readOnly: true });
    try {
      const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      expect(await readRestoreHistory(store)).toEqual({ restores: 2, unacknowledged: null });
      const found: unknown[] = [];
      for await (const { text } of reader.log()) {
        const { type, tree_id, body } = JSON.parse(text) as Entry & { readonly tree_id: string };
        if (type === 'input' && body.kind === 'restore') found.push([tree_id, body.event, body.lost !== null]);
      }
      expect(found).toEqual([
        [restoreTreeId(1), 'restored', false],
        [restoreTreeId(1), 'acknowledged', false],
        [restoreTreeId(2), 'restored', true],
        [restoreTreeId(2), 'acknowledged', true],
      ]);
    } finally {
      await store.close();
    }
  });
});
