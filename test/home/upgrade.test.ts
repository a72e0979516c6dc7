// Homes that earlier versions made, with their head files, opened for writing by this version.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { sqliteFormat } from '../../src/stores/sqlite/sqlite-database.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { dropGuards } from '../stores/sqlite/sqlite-harness.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';
import { ROOT } from '../root.js';
import { frozenClock } from '../features/backup/copy/rich-ledger.js';

const HOMES = {
  2: 'aa092745cf412ce05661f8f9b76ae76af696e2b9065b6fce0b111a59f3e82203',
  3: '0e2c2ee9fd515fdc13c292cc0b06747eac43456efe31f48d294365d104b58840',
} as const;

interface PackedHome {
  /** The run of a remote agent that has not ended. */
  readonly live: string;
  /** Their content in base64. */
  readonly files: Readonly<Record<string, string>>;
}

let folder: string;
beforeEach(() => {
  folder = tempFolder('upgrade');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const home = (): string => join(folder, 'home');
const packed = (format: number): Buffer => readFileSync(join(ROOT, `test/fixtures/homes/format-${format}.json.gz`));

function unpack(format: number): PackedHome {
  const found = JSON.parse(gunzipSync(packed(format)).toString('utf8')) as PackedHome;
  for (const [name, content] of Object.entries(found.files)) {
    mkdirSync(dirname(join(home(), name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(home(), name), Buffer.from(content, 'base64'), { mode: name.endsWith('.vkey') ? 0o644 : 0o600 });
  }
  return found;
}

/** An hour after the homes were made, so that no timer of theirs is due. */
const open = () =>
  openTurnpike({
    home: home(),
    clock: frozenClock(Date.parse('2026-11-26T00:40:00.000Z')),
    log: winstonLog('silent'),
    control: false,
  });

async function entries(): Promise<readonly string[]> {
  const { store, anchor } = openHome(homePaths(home()), { readOnly: true });
  const found: string[] = [];
  for await (const { text } of store.log()) found.push(text);
  expect(await new LedgerReader(store, anchor).verify()).toMatchObject({ ok: true });
  await anchor.close();
  await store.close();
  return found;
}

describe.each([2, 3] as const)('a home of format %i', (format) => {
  test('is unmodified, and is read without a change', async () => {
    expect(sha256(packed(format))).toBe(HOMES[format]);
    const { files } = unpack(format);
    expect((await entries()).length).toBeGreaterThan(20);
    expect(sqliteFormat(join(home(), 'ledger.db')).found).toBe(format);
    for (const name of ['ledger.db', 'ledger.head'])
      expect(readFileSync(join(home(), name)).toString('base64')).toBe(files[name]);
  });

  test('is migrated by the first opening for writing: entries stay, its agent continues, heads are signed', async () => {
    const { live } = unpack(format);
    const before = await entries();
    const turnpike = await open();
    expect(turnpike.recovery).toMatchObject({ damaged: 0, settled: 0, interrupted: 0 });
    expect(await turnpike.submit(live, JSON.stringify(proposal('THINK', {})))).toMatchObject({ outcome: 'SUCCESS' });
    const agent = await turnpike.startAgent({ case: 'case-new' });
    const write = proposal('WRITE_FILE', { path: '/sandbox/new.md', content: 'a new note' });
    expect(await agent.submit(JSON.stringify(write))).toMatchObject({ outcome: 'SUCCESS' });
    await agent.end();
    expect(await turnpike.replay()).toMatchObject({ ok: true, difference: null });
    await turnpike.close();
    const { found, newest } = sqliteFormat(join(home(), 'ledger.db'));
    expect(found).toBe(newest);
    const after = await entries();
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.length).toBeGreaterThan(before.length);
    expect(readFileSync(join(home(), 'ledger.head'), 'latin1')).toContain('turnpike-head 2 ');
    await (await open()).close();
  });

  test('is refused unchanged if its head file covers more than the ledger has', async () => {
    unpack(format);
    const db = new Database(join(home(), 'ledger.db'));
    dropGuards(db);
    const guards = db.prepare('SELECT max(log_index) AS last FROM blocks').get() as { readonly last: number };
    db.prepare('DELETE FROM blocks WHERE log_index = ?').run(guards.last);
    db.close();
    await expect(open()).rejects.toMatchObject({ code: expect.stringMatching(/^LEDGER_(?:BELOW_HEAD|TAMPERED)$/) });
    expect(sqliteFormat(join(home(), 'ledger.db')).found).toBe(format);
  });
});

test('a ledger of a newer format is refused, unchanged, with the versions in the message', async () => {
  unpack(3);
  const db = new Database(join(home(), 'ledger.db'));
  db.pragma('user_version = 7');
  db.pragma('journal_mode = DELETE');
  db.close();
  const bytes = readFileSync(join(home(), 'ledger.db'));
  const message = expect.stringMatching(/has format 7, this version of Turnpike knows 6: open it with a newer one/);
  await expect(open()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE', message });
  expect(readFileSync(join(home(), 'ledger.db')).equals(bytes)).toBe(true);
});
