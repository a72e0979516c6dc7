// Archive files of a ledger and the remaining ledger: each alone, and both as one log.

import { beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { openTurnpike } from '../../../../../src/host/turnpike.js';
import { dropGuards } from '../../../../stores/sqlite/sqlite-harness.js';
import {
  finish,
  initialised,
  jsonLines,
  linesOf,
  ownLedger,
  read,
  tempFolder,
  think,
  turnpike,
  write,
  type Said,
} from '../../fake-io.js';

let folder: string;
const at = (name: string): string => join(folder, name);
const home = (name: string): string => at(`.turnpike/${name}`);
const look = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const key = (): string => readFileSync(home('keys/ledger.vkey'), 'utf8').trim();

/** One run tree. @returns its id */
const work = async (content = 'a'): Promise<string> => {
  const stdin = [write('/sandbox/a.txt', content), think(), finish()].join('\n');
  expect(await turnpike(folder, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  return jsonLines<{ run_id: string }>((await look('runs', '--limit', '1', '--json')).stdout)[0]!.run_id;
};
/** One run tree that has read this many bytes; a payload of that size would not be stored. @returns its id */
const reading = async (content: string): Promise<string> => {
  const place = home('sandbox/case-local');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'large.txt'), content);
  const stdin = [read('/sandbox/large.txt'), finish()].join('\n');
  expect(await turnpike(folder, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  return jsonLines<{ run_id: string }>((await look('runs', '--limit', '1', '--json')).stdout)[0]!.run_id;
};
const sizeNow = async (): Promise<number> => Number(linesOf((await look('ledger', 'checkpoint')).stdout)[1]);
const withLedger = (sql: (db: Database.Database) => void): void => {
  const db = new Database(home('ledger.db'));
  const guards = db.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`).all() as { sql: string }[];
  dropGuards(db);
  sql(db);
  for (const guard of guards) db.exec(guard.sql);
  db.close();
};

beforeEach(async () => {
  folder = await initialised();
});

describe('ledger archive', () => {
  test('moves ended trees to a file that is verified and replayed alone; the ledger continues from it', async () => {
    const first = await reading('x'.repeat(400_000));
    await reading('y'.repeat(200_000));
    const size = await sizeNow();
    const bytes = statSync(home('ledger.db')).size;
    const said = await look('ledger', 'archive', 'one');
    expect(said).toMatchObject({ code: 0, stderr: '' });
    expect(said.stdout).toContain(`archived entries @0 to @${size - 1}, 2 run trees, to ${at('one')}`);
    expect(statSync(home('ledger.db')).size).toBeLessThan(bytes / 1.5);
    expect(statSync(at('one')).mode & 0o777).toBe(0o600);
    expect(existsSync(at('one.part'))).toBe(false);
    // Content that was too large for a row is gone too, even if it was encrypted.
    const contents = readdirSync(home('artifacts'), { recursive: true, encoding: 'utf8' });
    expect(contents.filter((name) => /[0-9a-f]{64}/.test(name))).toEqual([]);
    const away = tempFolder();
    copyFileSync(at('one'), join(away, 'one'));
    expect(await turnpike(away, ['ledger', 'verify', 'one', '--key', key()])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^ok: ${size} entries of 2 run trees, root`)),
    });
    expect(await turnpike(away, ['replay', 'one', '--key', key()])).toMatchObject({ code: 0 });
    expect((await look('ledger', 'verify')).stdout).toMatch(
      // The run in which policy has decided the archive.
      new RegExp(
        `^in part: 12 entries of 1 run tree, .*\nnot checked: entries @0 to @${size - 1} are archived: .*--archive FILE.*\n$`,
      ),
    );
    const last = await work();
    expect(last).not.toBe(first);
    const now = await sizeNow();
    expect(await look('ledger', 'verify')).toMatchObject({ code: 4 });
    expect(await look('replay')).toMatchObject({
      code: 4,
      stdout: expect.stringMatching(/^by hash alone: 2 run trees, .*\nnot checked: entries @0 to/),
    });
    expect(await look('ledger', 'verify', '--archive', 'one')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^ok: ${now} entries of 4 run trees, root [0-9a-f]{64}\n$`)),
    });
  });

  test('two consecutive archives form one log, in whatever order they are named', async () => {
    await work();
    await look('ledger', 'archive', 'one');
    await work();
    await work();
    expect(await look('ledger', 'archive', 'two')).toMatchObject({ code: 0 });
    await work();
    const size = await sizeNow();
    // Each archive is a run of its own.
    const whole = new RegExp(`^ok: ${size} entries of 6 run trees`);
    for (const names of [
      ['one', 'two'],
      ['two', 'one'],
    ]) {
      const said = await look('ledger', 'verify', ...names.flatMap((name) => ['--archive', name]));
      expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(whole) });
    }
    // The second file alone, with and without the home directory.
    expect((await look('ledger', 'verify', '--archive', 'two')).stdout).toMatch(
      /^in part: .*\nnot checked: entries @0 to/,
    );
    for (const argv of [['ledger', 'verify'], ['replay']]) {
      expect(await look(...argv, 'two', '--key', key())).toMatchObject({ code: 4 });
    }
    const last = jsonLines<{ trees: object }>(
      (await look('replay', 'two', '--key', key(), '--until', 'last', '--json')).stdout,
    );
    expect(last[0]?.trees).toEqual({ begun: 3, ended: 3 });
    expect(await look('replay', 'two', '--key', key(), '--until', '@0')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^LEDGER_ARCHIVED: entry @0 /),
    });
    // An export of the remaining ledger continues from both.
    expect(await look('ledger', 'export', 'rest')).toMatchObject({ code: 0 });
    expect(await look('ledger', 'verify', 'rest', '--key', key())).toMatchObject({ code: 4 });
    expect(await look('replay', 'rest', '--key', key())).toMatchObject({ code: 4 });
  });

  test('archives at most the given entries, reports an empty range, and overwrites nothing', async () => {
    await work();
    const first = await sizeNow();
    await work();
    expect((await look('ledger', 'archive', 'one', '--before', String(first + 3))).stdout).toMatch(
      new RegExp(
        `^archived entries @0 to @${first - 1}, 1 run tree, [^]*stopped at run_.*begins at entry @${first} and continues`,
      ),
    );
    expect(await look('ledger', 'archive', 'two', '--before', String(first))).toMatchObject({
      code: 0,
      stdout: 'nothing to archive\n',
    });
    expect(existsSync(at('two'))).toBe(false);
    expect(await look('ledger', 'archive', 'one')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there already'),
    });
    expect(await look('ledger', 'archive', 'two', '--before', '99999')).toMatchObject({ code: 2 });
    expect(await look('ledger', 'archive', 'two', '--before', '1')).toMatchObject({ code: 2 });
    expect(await look('ledger', 'verify', '--archive', 'one')).toMatchObject({ code: 0 });
  });

  test('an active tree keeps everything after it in the ledger, and is named', async () => {
    await work();
    const first = await sizeNow();
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const options = { home: at('.turnpike'), contract: at('contract'), log };
    const there = await openTurnpike(options);
    const { run_id } = await there.remoteAgents.start({ case: 'case-local' });
    expect(await look('ledger', 'archive', 'locked')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^LEDGER_LOCKED/),
    });
    await there.close();
    await work();
    const said = await look('ledger', 'archive', 'one', '--json');
    expect(jsonLines(said.stdout)).toMatchObject([
      { from: 0, to: first, trees: 1, held: { tree_id: run_id.split('.')[0], first, why: 'lives' } },
    ]);
    const again = await openTurnpike(options);
    await again.remoteAgents.end(run_id);
    await again.close();
    expect((await look('ledger', 'archive', 'two')).stdout).toMatch(/3 run trees/);
    expect(await look('ledger', 'verify', '--archive', 'one', '--archive', 'two')).toMatchObject({ code: 0 });
  });
});

describe('commands on an archived tree', () => {
  test('report that it is archived; run records stay available', async () => {
    const tree = await work();
    const first = await sizeNow();
    await work();
    await look('ledger', 'archive', 'one', '--before', String(first));
    for (const argv of [
      ['runs', tree],
      ['replay', tree],
      ['replay', '--until', '@3'],
      ['policy', 'explain', '@3'],
      ['ledger', 'prove', '@3'],
    ]) {
      expect([argv, await look(...argv)]).toEqual([
        argv,
        expect.objectContaining({ code: 4, stderr: expect.stringMatching(/^LEDGER_ARCHIVED/) }),
      ]);
    }
    expect((await look('runs')).stdout).not.toContain(tree);
    expect((await look('replay', '--until', String(first + 5))).code).toBe(0);
    expect((await look('policy', 'simulate')).code).not.toBe(3);
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const there = await openTurnpike({ home: at('.turnpike'), contract: at('contract'), log });
    expect(await there.ledger.run(`${tree}.1`)).toMatchObject({ run_id: `${tree}.1`, status: 'completed' });
    await there.close();
  });
});

describe('proofs across the boundary', () => {
  test('prove entries of the remaining ledger, and from earlier checkpoints', async () => {
    await work();
    await look('ledger', 'checkpoint', '--out', 'early');
    await work();
    await look('ledger', 'checkpoint', '--out', 'kept');
    const first = await sizeNow();
    await work();
    await look('ledger', 'checkpoint', '--out', 'late');
    expect(await look('ledger', 'archive', 'one', '--before', String(first))).toMatchObject({ code: 0 });
    await work();
    const check = () => look('ledger', 'check-proof', 'proof', '--key', home('keys/ledger.vkey'));
    for (let index = first; index < (await sizeNow()); index += 7) {
      expect(await look('ledger', 'prove', String(index), '--out', 'proof')).toMatchObject({ code: 0, stderr: '' });
      expect(await check()).toMatchObject({ code: 0 });
    }
    for (const name of ['kept', 'late']) {
      expect(await look('ledger', 'prove', '--from', name, '--out', 'proof')).toMatchObject({ code: 0, stderr: '' });
      expect(await check()).toMatchObject({ code: 0 });
    }
    expect(await look('ledger', 'prove', '--from', 'early')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^LEDGER_ARCHIVED.*--archive/),
    });
    for (const argv of [['--from', 'early'], ['@5']]) {
      const said = await look('ledger', 'prove', ...argv, '--archive', 'one', '--out', 'proof');
      expect(said).toMatchObject({ code: 0, stderr: '' });
      expect(await check()).toMatchObject({ code: 0 });
    }
  });
});

describe('tampering with archives, and with their records in the ledger', () => {
  beforeEach(async () => {
    await work();
    await look('ledger', 'archive', 'one');
    await work();
    await look('ledger', 'archive', 'two');
    await work();
  });
  const across = (...names: string[]): Promise<Said> =>
    look('ledger', 'verify', ...names.flatMap((name) => ['--archive', name]));

  test('detects a changed archive, one of another ledger, a duplicate and a missing one', async () => {
    const lines = linesOf(readFileSync(at('one'), 'utf8'));
    writeFileSync(at('bad'), `${lines.with(5, lines[6]!).join('\n')}\n`);
    expect(await across('bad', 'two')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('bad: this is not a complete'),
    });
    expect(await across('one')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('archive.missing: missing:'),
    });
    expect(await across('one', 'one', 'two')).toMatchObject({ code: 1 });
    // A copy of the file is accepted.
    copyFileSync(at('one'), at('copy'));
    expect(await across('copy', 'two')).toMatchObject({ code: 0 });
    const early = folder;
    folder = await ownLedger();
    await work();
    await look('ledger', 'archive', 'one');
    copyFileSync(at('one'), join(early, 'foreign'));
    folder = early;
    expect(await across('foreign', 'two')).toMatchObject({ code: 1, stderr: expect.stringContaining('foreign: ') });
  });

  test('rejects every false begin in a header without an internal error', async () => {
    const [header = '', ...rest] = linesOf(readFileSync(at('two'), 'utf8'));
    const { from, ...others } = JSON.parse(header) as { from: { size: number; frontier: string[] } };
    const { size, frontier } = from;
    const hash = 'f'.repeat(64);
    const said = [
      undefined,
      { size: size + 1, frontier },
      { size, frontier: frontier.slice(1) },
      { size, frontier: [] },
      { size, frontier: frontier.map(() => hash) },
      { size, frontier: [...frontier, hash] },
      { size, frontier: ['x', ...frontier.slice(1)] },
      { size: 0, frontier },
      { size: -1, frontier },
      { size: 2 ** 53, frontier: [hash] },
      { size: 2 ** 52, frontier: [hash] },
      { size: 1.5, frontier: [hash] },
      [],
      null,
    ];
    for (const one of said) {
      writeFileSync(at('bad'), `${[JSON.stringify({ ...others, from: one }), ...rest].join('\n')}\n`);
      for (const argv of [
        ['bad', '--key', key()],
        ['--archive', 'one', '--archive', 'bad'],
      ]) {
        const { code, stderr } = await look('ledger', 'verify', ...argv);
        expect([one, code, stderr]).toEqual([one, 1, expect.stringMatching(/^LEDGER_TAMPERED/)]);
      }
    }
  });

  test('rejects another archive signed with the key of the ledger', async () => {
    const kept = ['ledger.db', 'ledger.head'].map((name) => [home(name), readFileSync(home(name))] as const);
    await work();
    await look('ledger', 'archive', 'fork');
    for (const name of ['ledger.db-wal', 'ledger.db-shm']) rmSync(home(name), { force: true });
    for (const [path, bytes] of kept) writeFileSync(path, bytes);
    await work('b');
    await look('ledger', 'archive', 'three');
    expect(await across('one', 'two', 'fork')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('archive.differs'),
    });
    expect(await across('one', 'two', 'three')).toMatchObject({ code: 0 });
  });

  test.each<[string, string, (db: Database.Database) => void]>([
    ['another frontier', 'archive.head', (db) => db.exec(`UPDATE archives SET frontier = zeroblob(length(frontier))`)],
    ['another file', 'archive.unsigned', (db) => db.exec(`UPDATE archives SET sha256 = zeroblob(32)`)],
    ['no note', 'archive.unsigned', (db) => db.exec('UPDATE archives SET note = NULL')],
    ['no row', 'log.gap', (db) => db.exec('DELETE FROM archives')],
    [
      'the last row left out',
      'log.gap',
      (db) => db.exec('DELETE FROM archives WHERE size = (SELECT max(size) FROM archives)'),
    ],
  ])('%s: is found, and the ledger is not opened', async (_what, rule, change) => {
    withLedger(change);
    const said = await look('ledger', 'verify');
    expect(said).toMatchObject({ code: 1, stdout: expect.stringContaining(rule) });
    expect(await look('run', '-')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/LEDGER_(TAMPERED|BELOW_HEAD)/),
    });
  });

  test('detects a removed prefix that is covered by a checkpoint stored elsewhere', async () => {
    const folder2 = folder;
    folder = await initialised();
    await work();
    const note = (await look('ledger', 'checkpoint')).stdout;
    await work();
    const size = Number(linesOf(note)[1]);
    // Everything that the store itself would do, by an attacker with the database but without the key.
    await look('ledger', 'archive', 'thrown-away', '--before', String(size));
    expect(await look('ledger', 'verify')).toMatchObject({ code: 4 });
    withLedger((db) => db.prepare('UPDATE archives SET note = ?').run(note));
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('archive.unsigned'),
    });
    folder = folder2;
  });
});
