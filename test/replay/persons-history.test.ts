// The golden history of behaviour flags 6 to 8. It is never edited and never made again.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { headInMemory } from '../../src/adapters/head-in-memory.js';
import { openSqliteStore } from '../../src/adapters/sqlite-ledger-store.js';
import type { Entry } from '../../src/contract/entry.js';
import { sha256 } from '../../src/contract/hash.js';
import { LedgerReader } from '../../src/runtime/ledger-reader.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const GOLDEN = join(ROOT, 'test/fixtures/histories/look-alike-voters.db.gz');
const SHA256 = '0f811fcc21de76a54c60258635e0c2b17a0fc0d895a69b28e4602a6e0488e14c';

test('U-06: votes of look-alikes, unreadable names and rounded numbers come out as they were recorded', async () => {
  const folder = tempFolder('golden');
  const packed = readFileSync(GOLDEN);
  expect(sha256(packed)).toBe(SHA256);
  for (const part of ['artifacts', 'keys/cases']) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, 'ledger.db'), gunzipSync(packed));
  const keys = JSON.parse(readFileSync(GOLDEN.replace('.db.gz', '.keys.json'), 'utf8')) as Record<string, string>;
  for (const [name, text] of Object.entries(keys))
    writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  const store = openSqliteStore({
    file: join(folder, 'ledger.db'),
    artifactsDir: join(folder, 'artifacts'),
    readOnly: true,
  });
  try {
    const reader = new LedgerReader(store, headInMemory(await store.head()));
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
    const entries: Entry[] = [];
    for await (const { text } of store.log(0)) entries.push(JSON.parse(text) as Entry);
    const votes = entries.flatMap((entry) =>
      entry.type === 'audit_event' && entry.body.target?.name === 'approval' ? [entry.body.authz?.rule_id] : [],
    );
    expect(votes).toEqual([
      'approval.look_alike',
      'approval.accepted',
      'approval.already_voted',
      'approval.look_alike',
      'approval.granted',
    ]);
    const rules = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.rule_id] : []));
    expect(rules).toEqual([null, 'path.invisible_character', 'path.invisible_character', 'json.number_not_exact']);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
