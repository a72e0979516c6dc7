// Golden histories: ledgers that a version has recorded. They are never edited, and the current machines replay them as
// recorded.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { readIntegrated } from '../../../src/runtime/ledger/integrated-log.js';
import type { EntryPlace, StoredEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { replay } from '../../../src/kernel/replay/replay.js';
import { GOLDEN_HASHES, goldenHash, readGolden } from '../../fixtures/golden-history.js';
import { filesIn } from '../../sources.js';
import { ROOT } from '../../root.js';

const FOLDER = 'test/fixtures/histories';
const BYTES_MAX = 100_000;
const NAMES = Object.keys(GOLDEN_HASHES);

test('U-06: the hash of each golden history is known', () => {
  expect(filesIn(FOLDER, /\.db\.gz$/)).toEqual(NAMES.map((name) => `${FOLDER}/${name}.db.gz`).sort());
  expect(NAMES.length).toBeGreaterThan(20);
});

describe.each(NAMES)('the golden history %s', (name) => {
  test('U-06: is small, has its original bytes, and replays and verifies as recorded', async () => {
    expect(statSync(join(ROOT, FOLDER, `${name}.db.gz`)).size).toBeLessThan(BYTES_MAX);
    expect(goldenHash(name)).toBe(GOLDEN_HASHES[name]);
    const report = await readGolden(name, (reader) => reader.replay());
    expect(report).toMatchObject({ ok: true, difference: null });
    expect(report.not_recomputed).toBeUndefined();
    expect(await readGolden(name, (reader) => reader.verify())).toMatchObject({ ok: true });
  });
});

describe('the golden history everything', () => {
  test('U-06: contains runs of each kind, and a session', async () => {
    const { entries } = await readGolden('everything', (reader) => reader.replay());
    const state = await readGolden('everything', (reader) => reader.stateAt({ until: entries - 1 }));
    const found = new Set(state.runs.map(({ kind, reason }) => `${kind} ${reason ?? 'lives'}`));
    expect([...found]).toEqual(expect.arrayContaining(EVERYTHING));
    expect(state.sessions.map(({ status }) => status)).toEqual(['running']);
  });

  test('U-06: reveals a changed reply, state or verdict in its replay', async () => {
    await readGolden('everything', async (reader, store) => {
      const entries: StoredEntry[] = [];
      for await (const entry of store.log(0)) entries.push(entry);
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
      expect(outcomeIndexes.length).toBeGreaterThan(22);
      for (const at of outcomeIndexes.filter((_, n) => n % 11 === 0))
        expect(await replay(source(at))).toMatchObject({ ok: false, difference: { log_index: at } });
    });
  });
});

test('C84: the golden history withheld-exports has a denied, an unapproved and a completed export', async () => {
  const { entries } = await readGolden('withheld-exports', (reader) => reader.replay());
  const state = await readGolden('withheld-exports', (reader) => reader.stateAt({ until: entries - 1 }));
  expect(state.runs.flatMap(({ kind, reason }) => (kind === 'export' ? [reason] : []))).toEqual([
    'denied:export.content_withheld',
    'denied:export.not_approved',
    'completed',
  ]);
});

const EVERYTHING = [
  'orchestrator completed:finished',
  'agent lives',
  'tool_gateway completed',
  'db_write completed',
  'promotion completed',
  'export completed',
];
