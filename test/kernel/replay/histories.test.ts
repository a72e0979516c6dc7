// Golden histories: ledgers that earlier versions have recorded. They are never edited and never recorded again, and
// the current machines replay them as recorded.

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readIntegrated } from '../../../src/core/ledger/integrated-log.js';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { EntryPlace, StoredEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { filesIn, textOf } from '../../sources.js';
import { ROOT } from '../../root.js';

const FOLDER = 'test/fixtures/histories';
const BYTES_MAX = 300_000;

/** By the format of the ledger. `states` is the hash of the states of all runs at the end: see below. */
const GOLDEN = {
  2: {
    sha256: 'ebfac9573fef6a03eeb314659958aadcc68dfe113228dbbad87019485ab24f7f',
    report: { trees: 6, entries: 184 },
    sessions: [] as string[],
  },
  3: {
    sha256: '54e54e26ad07da3c85224c2a20a3f829025ef51fa18de335e86be9e0b5c686b0',
    report: { trees: 7, entries: 216 },
    sessions: ['running'],
  },
  4: {
    sha256: 'fe03bd6cc0ccda3145142b54d97b0c6ed8230d1e650b74414150a0a860479d89',
    report: { trees: 7, entries: 216 },
    sessions: ['running'],
  },
  5: {
    sha256: 'e5c3d7333638e068d4d94d82f75b0ce40d4ca0ffaa45d236d68064728d518a15',
    report: { trees: 7, entries: 216 },
    sessions: ['running'],
  },
} as const;
const FORMATS = [2, 3, 4, 5] as const;

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

const nameOf = (history: number | string): string => (typeof history === 'number' ? `format-${history}` : history);
const packed = (history: number | string): string => join(ROOT, FOLDER, `${nameOf(history)}.db.gz`);

function unpacked(format: number | string): { file: string; artifactsDir: string } {
  const file = join(folder, 'ledger.db');
  writeFileSync(file, gunzipSync(readFileSync(packed(format))));
  const keys = join(ROOT, FOLDER, `${nameOf(format)}.keys.json`);
  if (existsSync(keys)) {
    const texts = JSON.parse(readFileSync(keys, 'utf8')) as Record<string, string>;
    mkdirSync(join(folder, 'keys/cases'), { recursive: true });
    for (const [name, text] of Object.entries(texts))
      writeFileSync(join(folder, 'keys/cases', name), text, { mode: 0o600 });
  }
  return { file, artifactsDir: join(folder, 'artifacts') };
}

async function read<T>(
  format: number | string,
  readOnly: boolean,
  work: (reader: LedgerReader) => Promise<T>,
): Promise<T> {
  const store = openSqliteStore({ ...unpacked(format), readOnly });
  try {
    if (!readOnly) await store.acquire();
    return await work(new LedgerReader(store, memoryHeadStore(await store.head())));
  } finally {
    await store.close();
  }
}

test('U-06: exists for each format of the ledger, small, and with its original bytes', () => {
  expect(filesIn(FOLDER, /^format-\d+\.db\.gz$/)).toEqual(FORMATS.map((format) => `${FOLDER}/format-${format}.db.gz`));
  const [, newest] = /FORMAT_VERSION = (\d+)/.exec(textOf('src/stores/sqlite/sqlite-schema.ts')) ?? [];
  expect(FORMATS.at(-1)).toBe(Number(newest));
  for (const format of FORMATS) {
    expect(statSync(packed(format)).size).toBeLessThan(BYTES_MAX);
    expect(sha256(readFileSync(packed(format)))).toBe(GOLDEN[format].sha256);
  }
});

describe.each(FORMATS)('the golden history of format %i', (format) => {
  const golden = GOLDEN[format];

  test('U-06: replays as recorded, with either reader', async () => {
    for (const readOnly of [true, false]) {
      const report = await read(format, readOnly, (reader) => reader.replay());
      expect(report).toMatchObject({ ok: true, difference: null, ...golden.report });
      expect(await read(format, readOnly, (reader) => reader.verify())).toMatchObject({ ok: true });
    }
  });

  test('U-06: contains everything that this format could record', async () => {
    const state = await read(format, true, (reader) => reader.stateAt({ until: golden.report.entries - 1 }));
    const found = new Set(state.runs.map(({ kind, reason }) => `${kind} ${reason ?? 'lives'}`));
    expect([...found]).toEqual(expect.arrayContaining(EVERYTHING));
    expect(state.sessions.map(({ status }) => status)).toEqual(golden.sessions);
  });

  test('U-06: reveals a changed reply, state or verdict in its replay', async () => {
    const { file } = unpacked(format);
    const spoilt = join(folder, 'spoilt.db');
    copyFileSync(file, spoilt);
    const store = openSqliteStore({ file: spoilt, artifactsDir: join(folder, 'artifacts'), readOnly: true });
    const entries: StoredEntry[] = [];
    for await (const entry of store.log()) entries.push(entry);
    const source = (at: number) => ({
      async *log() {
        for (const [n, entry] of entries.entries())
          yield n === at ? { ...entry, text: entry.text.replace('"outcome":"', '"outcome":"x') } : entry;
        await Promise.resolve();
      },
      tree: (tree_id: string) => readIntegrated(store.tree(tree_id)),
      artifactsOf: (place: EntryPlace) => store.artifactsOf(place),
    });
    const outcomeIndexes = entries.flatMap(({ text, type }, n) =>
      type !== 'input' && text.includes('"outcome":"') ? [n] : [],
    );
    const { replay } = await import('../../../src/kernel/replay/replay.js');
    for (const at of outcomeIndexes.filter((_, n) => n % 11 === 0))
      expect(await replay(source(at))).toMatchObject({ ok: false, difference: { log_index: at } });
    await store.close();
  });
});

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

const EVERYTHING = [
  'orchestrator completed:finished',
  'agent lives',
  'tool_gateway completed',
  'db_write completed',
  'promotion completed',
  'export completed',
];
