// The golden history of behaviour flag 18: voters with and without an authentication that the vote records.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../src/adapters/memory/memory-head-store.js';
import { openSqliteStore } from '../../src/adapters/sqlite/sqlite-ledger-store.js';
import type { Entry } from '../../src/contract/run/entry.js';
import { sha256 } from '../../src/contract/hash.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { ROOT } from '../root.js';
import { tempFolder } from '../fixtures/temp-folder.js';

const NAME = 'verified-voters';
const SHA256 = 'd29bbf45256940af8ab8148f2a35c55e3d962a19141f23a6aa19ef558dcca1c7';
const packed = (end: string): string => join(ROOT, 'test/fixtures/histories', `${NAME}.${end}`);

let folder: string;
beforeEach(() => {
  folder = tempFolder('golden');
  mkdirSync(join(folder, 'artifacts'));
  mkdirSync(join(folder, 'keys/cases'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function read<T>(work: (reader: LedgerReader) => Promise<T>): Promise<T> {
  const file = join(folder, 'ledger.db');
  writeFileSync(file, gunzipSync(readFileSync(packed('db.gz'))));
  const keys = JSON.parse(readFileSync(packed('keys.json'), 'utf8')) as Record<string, string>;
  for (const [name, text] of Object.entries(keys)) {
    writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  }
  const store = openSqliteStore({ file, artifactsDir: join(folder, 'artifacts'), readOnly: true });
  try {
    return await work(new LedgerReader(store, memoryHeadStore(await store.head())));
  } finally {
    await store.close();
  }
}

async function entriesIn(reader: LedgerReader): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
  return entries;
}

describe(`the golden history ${NAME}`, () => {
  test('U-06: is unmodified, and replays as recorded', async () => {
    expect(sha256(readFileSync(packed('db.gz')))).toBe(SHA256);
    expect(await read((reader) => reader.verify())).toMatchObject({ ok: true });
    expect(await read((reader) => reader.replay())).toMatchObject({ ok: true, difference: null });
  });

  test('U-06 C98: contains every rule about the authentication of voters, and what each voter had', async () => {
    const entries = await read(entriesIn);
    const votes = entries.flatMap(({ type, body }) =>
      type === 'audit_event' && body.target?.name === 'approval'
        ? [[body.actor.actor_id, body.identity?.source ?? 'none', body.authz?.rule_id]]
        : [],
    );
    expect(votes).toEqual([
      ['anna', 'none', 'approval.not_verified'],
      ['anna', 'token', 'approval.not_verified'],
      ['anna', 'oidc', 'approval.not_verified'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.accepted'],
      ['otto', 'oidc', 'approval.already_voted'],
      ['a.berg', 'oidc', 'approval.already_voted'],
      ['requester', 'oidc', 'approval.by_requester'],
      ['a person', 'oidc', 'approval.by_requester'],
      ['otto', 'oidc', 'approval.accepted'],
      ['carla', 'oidc', 'approval.role_unknown'],
      ['dora', 'oidc', 'approval.granted'],
      ['anna', 'oidc', 'approval.accepted'],
      ['otto', 'oidc', 'approval.person_unmapped'],
      ['berta', 'none', 'approval.person_unmapped'],
      ['berta', 'token', 'approval.person_unmapped'],
      ['berta', 'token', 'approval.accepted'],
      ['dora', 'oidc', 'approval.granted'],
    ]);
  });
});
