// Golden histories of behaviour flags: small ledgers, each recorded by a version with the flags. The machines replay
// them as recorded, and they contain what their flags change.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const NAME = 'words-and-findings';
const SHA256 = '70e25f0c3c51c691f8e4d5472bc3c2d870c025eb44da61b29c18eb753910bb0e';
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
    copyFileSync(packed('db.gz'), join(folder, 'copy'));
    expect(await read((reader) => reader.verify())).toMatchObject({ ok: true });
    expect(await read((reader) => reader.replay())).toMatchObject({ ok: true, difference: null });
  });

  test('U-06: contains what flags 9 to 12 change', async () => {
    const entries = await read(entriesIn);
    const audit = entries.flatMap(({ type, body }) => (type === 'audit_event' ? [body] : []));
    const reasons = new Set(audit.map(({ outcome_reason = '' }) => outcome_reason));
    // 9 and 11: a cancel with free text is recorded as a code, in a session as well, and no cancel has paused one.
    expect([...reasons]).toEqual(
      expect.arrayContaining([
        'cancelled:by_caller',
        'cancelled:shutdown',
        'denied:prohibition.client_identity',
        'denied:prohibition.privileged_notes',
      ]),
    );
    const sessions = entries.flatMap(({ type, body }) => (type === 'session_event' ? [body] : []));
    expect(sessions.filter(({ event }) => event === 'pause')).toHaveLength(1);
    // 10: findings are recorded.
    const found = entries.flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'start_run'
        ? [body.facts.artifact_flags.filter((flag) => flag.includes(':'))]
        : [],
    );
    expect(found).toEqual([['found:birth_date'], ['found:email'], ['found:privilege_mark']]);
    // 11: unknown names are hashes.
    const text = JSON.stringify(entries);
    for (const name of ['NO_SUCH_ACTION', 'unknown_argument', 'no.such_tool', 'withdrawn', 'lunch', 'that was all']) {
      expect(text.includes(name)).toBe(false);
    }
    // 12: what runs were given, and have produced.
    const kinds = new Set(
      audit.flatMap(({ input_artifacts = [] }) => input_artifacts.map(({ artifact_kind }) => artifact_kind)),
    );
    expect([...kinds]).toEqual(
      expect.arrayContaining(['policy', 'machines', 'session_spec', 'step_packet', 'prompt', 'note']),
    );
  });
});
