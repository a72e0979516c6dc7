// A ledger with flag 5: it names an export by its locator, and contains no path of the host.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../root.js';

const HISTORY = join(ROOT, 'test/fixtures/histories/export-locator');
const SHA256 = 'b1a11a9d1c597d41f87c691b6b44de31548e1ae997ce9694fda411ab6ebbc0d5';

let folder: string;
beforeEach(() => {
  folder = tempFolder('golden');
  mkdirSync(join(folder, 'artifacts'));
  mkdirSync(join(folder, 'keys/cases'), { recursive: true });
  writeFileSync(join(folder, 'ledger.db'), gunzipSync(readFileSync(`${HISTORY}.db.gz`)));
  const keys = JSON.parse(readFileSync(`${HISTORY}.keys.json`, 'utf8')) as Record<string, string>;
  for (const [name, text] of Object.entries(keys))
    writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('S4-76 C85: replays as recorded, and names the bundle by its locator', async () => {
  expect(sha256(readFileSync(`${HISTORY}.db.gz`))).toBe(SHA256);
  const files = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') };
  const store = openSqliteStore({ ...files, readOnly: true });
  try {
    const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
    expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
    expect(await reader.verify()).toMatchObject({ ok: true });
    const found: string[] = [];
    let text = '';
    for await (const entry of reader.log()) {
      text += entry.text;
      found.push(...(entry.text.match(/"storage_locator":"[^"]*"/g) ?? []));
      for (const artifact of await store.artifactsOf(entry))
        if ('bytes' in artifact) text += Buffer.from(artifact.bytes).toString();
    }
    expect(new Set(found)).toEqual(new Set(['"storage_locator":"bag"']));
    expect(text).toContain('"package_locator":"bag"');
    expect(text).not.toMatch(/"(?:destination|package_locator|storage_locator)":"\//);
  } finally {
    await store.close();
  }
});
