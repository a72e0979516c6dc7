// Time travel: the state at any entry, compared with the entries themselves, with a cache and without.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { integratedLog } from '../../../src/runtime/ledger/integrated-log.js';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import type { HistoryCache } from '../../../src/core/ledger/history-cache.js';
import { stateAt, type HistorySource } from '../../../src/kernel/replay/state-at.js';
import type { LedgerState } from '../../../src/kernel/replay/ledger-state.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { RunRecords } from '../../../src/runtime/ledger/run-records.js';
import { sized } from '../../fixtures/campaign.js';
import { Bench } from '../../fixtures/bench.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const EVERY = 40;

let bench: Bench;
let entries: Entry[];
let ledger: HistorySource;
const folder = tempFolder('history');

/** Concurrent agents: some end, one is denied, one waits, and one gets an input after its end. */
beforeAll(async () => {
  bench = await Bench.open();
  const { turnpike } = bench;
  bench.put('note.txt', 'a note');
  const remote = await turnpike.startAgent({ link: 'remote' });
  for (let round = 0; round < 4; round += 1) {
    const [one, other] = [await turnpike.startAgent(), await turnpike.startAgent()];
    for (const agent of [one, remote, other, one]) {
      await agent.submit(JSON.stringify(proposal('READ_FILE', { path: '/sandbox/note.txt' })));
      await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${round}.txt`, content: 'x' })));
      await agent.submit(JSON.stringify(proposal('DELETE_FILE', { path: '/sandbox/run.sh' })));
    }
    await one.end();
    if (round < 3) await other.end();
  }
  await turnpike.startAgent({ lane: 'NO_SUCH_LANE' });
  entries = await bench.entries();
  const { store } = openHome(homePaths(bench.home), { readOnly: true });
  ledger = { ...integratedLog(store), archives: store.archives };
  close = () => store.close();
});
let close: () => Promise<void>;

afterAll(async () => {
  await close();
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The states of runs after the first entries of the log, from the run records. */
function statesAfter(size: number): Record<string, string> {
  const records = new RunRecords();
  for (const entry of entries.slice(0, size)) records.fold(entry);
  return Object.fromEntries(records.all().map(({ run_id, status }) => [run_id, status]));
}

const statesOf = ({ runs }: LedgerState): Record<string, string> =>
  Object.fromEntries(runs.map(({ run_id, state }) => [run_id, state]));

const APART = sized(71, 23);
const everywhere = (): number[] => Array.from({ length: Math.ceil(entries.length / APART) }, (_, n) => n * APART);

test('U-06: at any entry every run is in the state that the entries so far determine', async () => {
  expect(entries.length).toBeGreaterThan(8 * EVERY);
  for (const until of everywhere()) {
    const state = await stateAt(ledger, null, { until });
    expect(state.through).toBeGreaterThanOrEqual(until);
    expect(entries[state.through + 1]?.type ?? 'input').toBe('input');
    expect(entries.slice(until + 1, state.through + 1).map(({ type }) => type)).not.toContain('input');
    expect(statesOf(state)).toEqual(statesAfter(state.through + 1));
  }
});

test("U-06: a reader's cache gives the same result, in any order, and bounds the fold", async () => {
  const cache = sqliteHistoryCache(join(folder, 'same.cache'));
  let read = 0;
  const counted: HistorySource = {
    artifactsOf: (place) => ledger.artifactsOf(place),
    tree: (tree_id, from) => ledger.tree(tree_id, from),
    async *log(from) {
      for await (const entry of ledger.log(from)) {
        read += 1;
        yield entry;
      }
    },
  };
  await stateAt(counted, cache, { until: entries.length - 1, pointEntries: EVERY });
  expect(read).toBe(entries.length);
  for (const until of everywhere().reverse()) {
    read = 0;
    const remembered = await stateAt(counted, cache, { until, pointEntries: EVERY });
    // One input causes about ten entries, so a point may lie that far after its due position.
    expect(read).toBeLessThan(EVERY + 30);
    expect(remembered).toEqual(await stateAt(ledger, null, { until }));
  }
  await cache.close();
});

test('S0-12: shows the position of an agent: ready, or in the phase of the step whose effect is in flight', async () => {
  const intent = entries.findIndex(
    ({ type, body }) => type === 'run_created' && 'run_kind' in body && body.run_kind === 'db_write',
  );
  const state = await stateAt(ledger, null, { until: intent });
  const agent = state.runs.find(({ run_id, at }) => at?.startsWith('EXECUTE') === true && run_id.endsWith('.1'));
  expect(agent).toMatchObject({ kind: 'agent', state: 'running', step: 2, reason: null });
  const end = await stateAt(ledger, null, { until: entries.length - 1 });
  const live = end.runs.filter(({ kind, reason }) => kind === 'agent' && reason === null);
  expect(live.map(({ at }) => at)).toEqual(['running.ready', 'running.ready']);
  expect(end.trees).toEqual({ begun: 10, ended: 8 });
});

test('U-06: of one tree, by seq, equals that of the whole ledger', async () => {
  const tree_id = entries[0]?.tree_id ?? '';
  const own = entries.flatMap((entry, log_index) => (entry.tree_id === tree_id ? [{ log_index, seq: entry.seq }] : []));
  const cache = sqliteHistoryCache(join(folder, 'tree.cache'));
  for (const { log_index, seq } of own.filter((_, n) => n % 29 === 0)) {
    const whole = await stateAt(ledger, null, { until: log_index });
    const alone = await stateAt(ledger, null, { until: seq, tree_id });
    const byPoints = await stateAt(ledger, cache, { until: seq, tree_id, pointEntries: EVERY / 4 });
    expect(alone).toMatchObject({ until: log_index, runs: whole.runs.filter((run) => run.tree_id === tree_id) });
    expect(byPoints).toEqual(alone);
  }
  await cache.close();
});

test('U-06: a missing entry is rejected', async () => {
  const missing = { code: 'USAGE', message: expect.stringContaining(`the last is @${entries.length - 1}`) };
  await expect(stateAt(ledger, null, { until: entries.length })).rejects.toMatchObject(missing);
  const tree_id = entries[0]?.tree_id ?? '';
  await expect(stateAt(ledger, null, { until: 99_999, tree_id })).rejects.toMatchObject({ code: 'USAGE' });
  await expect(stateAt(ledger, null, { until: 0, tree_id: 'run_none' })).rejects.toMatchObject({ code: 'USAGE' });
});

/** Possible damage to a cache: it costs time, and nothing else. */
const SPOILT: Readonly<Record<string, (file: string) => HistoryCache>> = {
  'was truncated': (file) => {
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, bytes.length / 2));
    return sqliteHistoryCache(file);
  },
  'is not a database': (file) => {
    writeFileSync(file, 'not one');
    return sqliteHistoryCache(file);
  },
  'has a wrong state of a run': (file) => spoiling(file, (text) => text.replaceAll('"completed"', '"cancelled"')),
  'has lost the snapshots of its trees': (file) => {
    const cache = sqliteHistoryCache(file);
    return around(cache, { snapshot: () => Promise.resolve(null) });
  },
  'has lost a point in between': (file) => {
    const db = new Database(file);
    const sizes = db.prepare('SELECT size FROM points ORDER BY size').pluck().all();
    db.prepare('DELETE FROM points WHERE size = ?').run(sizes[sizes.length >> 1]);
    db.close();
    return sqliteHistoryCache(file);
  },
  'cannot be written to its place': () => sqliteHistoryCache(join(folder, 'no/such/folder.cache')),
};

const around = (cache: HistoryCache, over: Partial<HistoryCache>): HistoryCache => ({
  point: (size) => cache.point(size),
  ended: (size) => cache.ended(size),
  snapshot: (tree_id, size) => cache.snapshot(tree_id, size),
  save: (point, snapshots, after) => cache.save(point, snapshots, after),
  clear: () => cache.clear(),
  wipe: () => cache.wipe(),
  close: () => cache.close(),
  ...over,
});

function spoiling(file: string, spoil: (text: string) => string): HistoryCache {
  const cache = sqliteHistoryCache(file);
  return around(cache, {
    ended: async (size) => (await cache.ended(size)).map((part) => ({ ...part, ended: spoil(part.ended) })),
  });
}

test.each(Object.keys(SPOILT))('U-06: a cache that %s changes nothing in the result', async (name) => {
  const file = join(folder, `${name.replaceAll(' ', '-')}.cache`);
  const until = entries.length - 20;
  const options = { until, pointEntries: EVERY };
  const first = sqliteHistoryCache(file);
  const result = await stateAt(ledger, first, options);
  expect(await first.point(until)).not.toBeNull();
  await first.close();
  const spoilt = SPOILT[name]!(file);
  expect(await stateAt(ledger, spoilt, options)).toEqual(result);
  await spoilt.close();
});

test('U-06: a cache of another ledger is detected by its last entry', async () => {
  const cache = sqliteHistoryCache(join(folder, 'other.cache'));
  const other = await Bench.open();
  const agent = await other.turnpike.startAgent();
  for (let n = 0; n < 40; n += 1) await agent.submit(JSON.stringify(proposal('THINK', {})));
  const until = 80;
  const result = await stateAt(ledger, null, { until });
  const source = other.turnpike.ledger as unknown as HistorySource;
  const theirs = await stateAt(source, cache, { until, pointEntries: EVERY });
  expect(theirs.runs).not.toEqual(result.runs);
  expect(await stateAt(ledger, cache, { until, pointEntries: EVERY })).toEqual(result);
  await cache.close();
  await other.close();
});
