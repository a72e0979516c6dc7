// Erasure through the whole runtime: what is removed, what stays, and what each reader returns.

import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { winstonLog } from '../../../src/system/winston-log.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import { all } from '../../fixtures/entries.js';
import { Bench } from '../../fixtures/bench.js';

const SECRET = 'the client said so, in confidence';
const CASE = 'case-gone';
const erasure = { case: CASE, actor: 'a person' };
let bench: Bench;
let ids = 0;

const proposal = (action: string, args: object): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String((ids += 1)).padStart(12, '0')}`,
    reasoning: SECRET,
    action,
    args,
  });

/** An agent that writes, reads and is denied. @returns its root run */
async function work(case_id: string, bytes = 20): Promise<string> {
  const agent = await bench.turnpike.startAgent({ case: case_id });
  await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: SECRET.repeat(bytes) }));
  await agent.submit(proposal('READ_FILE', { path: '/sandbox/a.txt' }));
  await agent.submit(proposal('READ_FILE', { path: '/etc/passwd' }));
  await agent.end();
  return agent.root_run_id;
}

beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

describe('D14: an erased case', () => {
  test('has no content anywhere in the home, and all of its entries verify', async () => {
    const tree = await work(CASE, 500);
    const other = await work('case-kept');
    const { ledger } = bench.turnpike;
    const before = await all(ledger.log());
    const erased = await bench.turnpike.erase(erasure);
    expect(erased.contents).toBeGreaterThanOrEqual(4);
    // The run of the erasure follows.
    expect((await all(ledger.log())).slice(0, before.length)).toEqual(before);
    const verdict = await ledger.verify();
    expect(verdict).toMatchObject({
      ok: false,
      verdict: 'by_hash_alone',
      entries: (await all(ledger.log())).length,
      withheld: { trees: 1 },
    });
    expect(await ledger.replay(other)).not.toHaveProperty('not_recomputed');
    const report = await ledger.replay();
    const [first] = before.filter(({ tree_id, text }) => tree_id === tree && text.includes('"kind":"proposal"'));
    expect(report).toMatchObject({ ok: false, verdict: 'by_hash_alone', difference: null });
    expect(report.not_recomputed).toEqual([
      {
        tree_id: tree,
        case_id: CASE,
        withheld: 'erased',
        seq: first!.seq,
        log_index: first!.log_index,
        entries: before.filter(({ tree_id, seq }) => tree_id === tree && seq >= first!.seq).length,
      },
    ]);
    expect(report.entries + report.not_recomputed![0]!.entries).toBe((await all(ledger.log())).length);
    await bench.turnpike.close();
    expect(filesWith(bench.home, SECRET)).toEqual(['sandbox/case-gone/a.txt', 'sandbox/case-kept/a.txt']);
  });

  test('is in no cache of any reader', async () => {
    await work(CASE);
    const cache = sqliteHistoryCache(join(bench.home, 'history.cache'));
    const text = SECRET.repeat(1_000);
    const point = { size: 3, live: '{}', live_sha256: '', ended: '{}', ended_sha256: '' };
    expect(await cache.save(point, [{ tree_id: 'a tree', size: 3, text, sha256: '' }], 0)).toBe(true);
    await bench.turnpike.erase(erasure);
    expect(filesWith(bench.home, SECRET)).toEqual(['sandbox/case-gone/a.txt']);
    // A replay point that was folded before the erasure is not stored after it.
    expect(await cache.save(point, [{ tree_id: 'a tree', size: 3, text, sha256: '' }], 0)).toBe(false);
    await cache.close();
  });

  test('cannot be exported if the export needs the data that it had read, and the error says why', async () => {
    const agent = await bench.turnpike.startAgent({ case: CASE });
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: SECRET }));
    await agent.submit(proposal('READ_FILE', { path: '/sandbox/a.txt' }));
    await agent.end();
    await bench.turnpike.erase(erasure);
    const options = {
      case: CASE,
      actor: 'anna',
      role: 'ATTORNEY_ADMIN',
      reason: 'discovery request 4',
      destination: join(bench.folder, 'bag'),
    };
    await expect(bench.turnpike.export(options)).rejects.toMatchObject({ code: 'LEDGER_ERASED' });
  });

  test('is not erased while one of its run trees is live', async () => {
    await work(CASE);
    const agent = await bench.turnpike.startAgent({ case: CASE });
    const refusal = { code: 'CASE_IN_USE', message: expect.stringContaining(agent.root_run_id) };
    await expect(bench.turnpike.erase(erasure)).rejects.toMatchObject(refusal);
    expect(await bench.turnpike.replay()).not.toHaveProperty('not_recomputed');
    await agent.submit(proposal('THINK', {}));
    await agent.end();
    await bench.turnpike.erase(erasure);
    expect((await bench.turnpike.replay()).not_recomputed).toHaveLength(2);
  });

  test('can be used again, with new content of its own', async () => {
    await work(CASE);
    await bench.turnpike.erase(erasure);
    const again = await work(CASE);
    expect(await bench.turnpike.replay(again)).not.toHaveProperty('not_recomputed');
    expect((await bench.turnpike.replay()).not_recomputed).toHaveLength(1);
    const { contents } = await bench.turnpike.erase(erasure);
    expect(contents).toBeGreaterThan(0);
    expect((await bench.turnpike.replay()).not_recomputed).toHaveLength(2);
    expect(await bench.turnpike.erase(erasure)).toEqual({ contents: 0, bytes: 0 });
  });

  test('is erased while other cases work, whose steps wait for it and are not lost', async () => {
    await work(CASE);
    const agents = await Promise.all(['case-b', 'case-c', 'case-d'].map((c) => bench.turnpike.startAgent({ case: c })));
    const steps = agents.flatMap((agent) =>
      Array.from({ length: 5 }, (_, n) =>
        agent.submit(proposal('WRITE_FILE', { path: `/sandbox/${n}.txt`, content: 'x' })),
      ),
    );
    const erased = bench.turnpike.erase(erasure);
    const outcomes = (await Promise.all(steps)).map((response) => ('outcome' in response ? response.outcome : ''));
    expect(outcomes).toEqual(steps.map(() => 'SUCCESS'));
    expect((await erased).contents).toBeGreaterThan(0);
  });

  test('answers nothing more: its trees cannot be folded, and every error says why', async () => {
    const erased = await work(CASE);
    await bench.turnpike.erase(erasure);
    const failure = { code: 'LEDGER_ERASED' };
    await expect(bench.turnpike.submit(`${erased}.1`, proposal('THINK', {}))).rejects.toMatchObject(failure);
    expect((await bench.turnpike.ledger.treeOf(erased))?.runs.length).toBeGreaterThan(3);
    // Other cases are unaffected.
    await work('case-other');
  });

  test('has past states from its entries alone: its runs and their states, but not their internal states', async () => {
    const erased = await work(CASE);
    const { ledger } = bench.turnpike;
    const entries = await all(ledger.log());
    const points = entries.map(({ log_index }) => log_index);
    const before = await Promise.all(points.map((until) => ledger.stateAt({ until })));
    await bench.turnpike.erase(erasure);
    for (const [until, state] of before.entries()) {
      const after = await ledger.stateAt({ until });
      if (after.through === state.through) {
        const statesOf = ({ runs }: typeof state) => runs.map(({ run_id, state: at, reason }) => [run_id, at, reason]);
        expect(statesOf(after)).toEqual(statesOf(state));
      }
      const isFromEntries = until >= 8 && after.trees.ended === 0;
      expect(after.not_recomputed).toEqual(isFromEntries ? [erased] : undefined);
    }
  });

  test('is erased for the next process, too', async () => {
    await work(CASE);
    await bench.turnpike.erase(erasure);
    await bench.turnpike.close();
    bench = await Bench.reopen(bench);
    expect(bench.turnpike.recovery).toMatchObject({ trees: 0, damaged: 0 });
    expect((await bench.turnpike.replay()).not_recomputed).toHaveLength(1);
  });

  test('does not prevent opening an older copy of the ledger in which it is live', async () => {
    const agent = await bench.turnpike.startAgent({ case: CASE, link: 'remote' });
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: SECRET }));
    const older = join(bench.folder, 'older');
    cpSync(bench.home, older, { recursive: true, filter: (path) => !path.endsWith('.sock') });
    await agent.end();
    await bench.turnpike.erase(erasure);
    rmSync(join(older, 'keys'), { recursive: true });
    cpSync(join(bench.home, 'keys'), join(older, 'keys'), { recursive: true });
    const reopened = await openTurnpike({ home: older, control: false, log: winstonLog('silent') });
    expect(reopened.recovery).toMatchObject({ trees: 1, damaged: 0 });
    await expect(reopened.agent(agent.run_id)).rejects.toMatchObject({ code: 'LEDGER_ERASED' });
    await reopened.close();
  });

  test.each(['a', 'no\nlines', 'x'.repeat(121)])('the actor %j is rejected, and nothing is erased', async (actor) => {
    await work(CASE);
    await expect(bench.turnpike.erase({ case: CASE, actor })).rejects.toMatchObject({ code: 'USAGE' });
    expect(await bench.turnpike.replay()).not.toHaveProperty('not_recomputed');
  });
});

/** The files below a folder that contain a text. */
function filesWith(folder: string, text: string): readonly string[] {
  const files = execFileSync('find', [folder, '-type', 'f'], { encoding: 'utf8' }).trim().split('\n').sort();
  return files.filter((file) => readFileSync(file).includes(text)).map((file) => file.slice(folder.length + 1));
}
