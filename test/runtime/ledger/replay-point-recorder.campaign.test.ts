// Replay points that the writer makes as the ledger grows: the first read of a past state reads as little as later
// ones, and equals a fold from the first entry.

import { cpSync } from 'node:fs';
import { readIntegrated, integratedLog } from '../../../src/runtime/ledger/integrated-log.js';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { beforeEach, expect, test } from '@jest/globals';
import { sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { stateAt, type HistorySource } from '../../../src/kernel/replay/state-at.js';
import { createHome, homePaths, openHome, type HomePaths } from '../../../src/home/home.js';
import { openTurnpikeIn, type Turnpike } from '../../../src/host/turnpike.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const EVERY = 60;
/** A batch has several inputs, each of which causes some ten entries. */
const MORE = 60;

const folder = tempFolder('points');

let home: HomePaths;
let homes = 0;
beforeEach(async () => {
  home = await createHome(join(folder, `home-${(homes += 1)}`));
});

async function opened(liveTreesMax = 100): Promise<Turnpike> {
  const ground = { home, ...openHome(home, { readOnly: false }), pointEntries: EVERY };
  return openTurnpikeIn(ground, { home: home.home, control: false, log: winstonLog('silent'), liveTreesMax });
}

/** Several concurrent agents, some of which end. */
async function work(turnpike: Turnpike, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const agents = await Promise.all(
      Array.from({ length: 4 }, () => turnpike.startAgent({ link: 'remote', case: 'case-0001' })),
    );
    for (const [index, agent] of agents.entries()) {
      const args = { path: `/sandbox/${round}-${index}.txt`, content: 'x' };
      await agent.submit(JSON.stringify(proposal('WRITE_FILE', args)));
      await agent.submit(JSON.stringify(proposal('DELETE_FILE', { path: '/sandbox/run.sh' })));
      if (index % 2 === 0) await agent.end();
    }
    // Points are written after the turn of the commit.
    await pause(20);
  }
}

/** A new reader of several past states: how much of the log it reads, and whether the results are right. */
async function firstQuestions(): Promise<{ readonly most: number; readonly same: boolean; readonly size: number }> {
  const { store } = openHome(home, { readOnly: true });
  let read = 0;
  const counted: HistorySource = {
    artifactsOf: (place) => store.artifactsOf(place),
    tree: (tree_id, from) => readIntegrated(store.tree(tree_id, from)),
    async *log(from) {
      for await (const entry of store.log(from)) {
        read += 1;
        yield entry;
      }
    },
  };
  const { size } = await store.head();
  let [most, same] = [0, true];
  for (const part of [0.999, 0.3, 0.5, 0.77, 0.9]) {
    const until = Math.floor(size * part);
    const cache = sqliteHistoryCache(home.history);
    read = 0;
    const answer = await stateAt(counted, cache, { until, pointEntries: EVERY });
    most = Math.max(most, read);
    same &&= JSON.stringify(answer) === JSON.stringify(await stateAt(integratedLog(store), null, { until }));
    await cache.close();
  }
  await store.close();
  return { most, same, size };
}

test.each([
  ['all trees in memory', 100],
  ['few trees in memory', 2],
])('U-06: the first read finds points that the writer has made, with %s', async (_what, liveTreesMax) => {
  const turnpike = await opened(liveTreesMax);
  await work(turnpike, 6);
  const running = await firstQuestions();
  expect(running.size).toBeGreaterThan(8 * EVERY);
  expect(running).toMatchObject({ same: true });
  expect(running.most).toBeLessThan(EVERY + MORE);
  await turnpike.close();
  const closed = await firstQuestions();
  expect(closed).toMatchObject({ same: true });
  expect(closed.most).toBeLessThan(EVERY + MORE);
});

test('U-06: the next process continues after the last point, also after a crash', async () => {
  const first = await opened();
  await work(first, 3);
  // As a crash leaves the home: nothing that closing would do was done.
  const left = homePaths(join(folder, `home-${(homes += 1)}`));
  cpSync(home.home, left.home, { recursive: true });
  await first.close();
  home = left;
  const points = sqliteHistoryCache(home.history);
  const last = await points.point(1e9);
  await points.close();
  const second = await opened(2);
  await work(second, 3);
  const reads = await firstQuestions();
  expect(reads).toMatchObject({ same: true });
  expect(reads.most).toBeLessThan(EVERY + MORE);
  expect(reads.size).toBeGreaterThan((last?.size ?? 0) + 2 * EVERY);
  await second.close();
});

test('U-06: the writer continues its points after a failure and a restart', async () => {
  const turnpike = await opened(2);
  await work(turnpike, 3);
  const exec = (sql: string) => {
    const db = new Database(home.ledger);
    db.exec(sql);
    db.close();
  };
  exec(`CREATE TRIGGER breakage BEFORE INSERT ON blocks BEGIN SELECT RAISE(ABORT, 'broken'); END`);
  await expect(turnpike.startAgent({ case: 'case-local' })).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  exec('DROP TRIGGER breakage');
  await turnpike.restart();
  await work(turnpike, 4);
  const reads = await firstQuestions();
  expect(reads).toMatchObject({ same: true });
  expect(reads.most).toBeLessThan(EVERY + MORE);
  await turnpike.close();
});

test('U-06: after another caller discards the points, it uses none that depend on them, and starts again', async () => {
  const turnpike = await opened();
  await work(turnpike, 3);
  const cache = sqliteHistoryCache(home.history);
  await cache.clear();
  await cache.close();
  await work(turnpike, 4);
  const reads = await firstQuestions();
  expect(reads.same).toBe(true);
  await turnpike.close();
  const later = sqliteHistoryCache(home.history);
  expect(await later.point(1e9)).not.toBeNull();
  await later.close();
});

test('U-06: a point that a reader has stored in the meantime counts no run twice', async () => {
  const turnpike = await opened();
  await work(turnpike, 2);
  const { store } = openHome(homePaths(home.home), { readOnly: true });
  const cache = sqliteHistoryCache(home.history);
  const { size } = await store.head();
  // Other intervals than the writer's: these points lie between those.
  await stateAt(integratedLog(store), cache, { until: size - 1, pointEntries: 25 });
  await work(turnpike, 2);
  await stateAt(integratedLog(store), cache, { until: (await store.head()).size - 1, pointEntries: 25 });
  await cache.close();
  await store.close();
  await turnpike.close();
  expect(await firstQuestions()).toMatchObject({ same: true });
});

test('U-06: after restoring an earlier ledger, later states do not count', async () => {
  const first = await opened();
  await work(first, 2);
  await first.close();
  const copy = join(folder, 'kept');
  const parts = ['ledger.db', 'ledger.head', 'artifacts', 'keys'];
  for (const part of parts) cpSync(join(home.home, part), join(copy, part), { recursive: true });
  const lost = await opened();
  await work(lost, 3);
  await lost.close();
  for (const part of parts) cpSync(join(copy, part), join(home.home, part), { recursive: true, force: true });
  const second = await opened();
  await second.startAgent({ link: 'remote', case: 'case-0002' });
  await work(second, 5);
  await second.close();
  expect(await firstQuestions()).toMatchObject({ same: true });
});
