// A copy of an SQLite home to another one, and what is refused. PostgreSQL: copy-home.nightly.test.ts.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { withoutTriggers } from '../../../../src/stores/sqlite/sqlite-database.js';
import { openTurnpike } from '../../../../src/host/turnpike.js';
import { copyHome, reopenHome } from '../../../../src/features/backup/index.js';
import { locationText, resolveLocation, type LedgerLocation } from '../../../../src/home/ledger-location.js';
import { createCopyMarker, removeCopyMarker, writeCopiedMark } from '../../../../src/home/copy-marker.js';
import { turnpike } from '../../../interfaces/cli/fake-io.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { createRichLedger, serviceOptions } from './rich-ledger.js';
import { dumpLedger } from './same-ledger.js';

let folder: string;
let from: LedgerLocation;

beforeAll(async () => {
  folder = tempFolder('copy');
  from = resolveLocation(await createRichLedger(folder));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string): LedgerLocation => resolveLocation(join(folder, name));
/** A copy of the home by other means. */
const cloned = (name: string): LedgerLocation => {
  cpSync(from.paths.home, join(folder, name), { recursive: true, filter: (path) => !path.endsWith('pipe') });
  return at(name);
};

describe('home copy', () => {
  test('copies an SQLite home: the same ledger, files, keys and tokens', async () => {
    const to = at('same');
    symlinkSync('/etc/passwd', join(from.paths.sandbox, 'case-a/link'));
    execFileSync('mkfifo', [join(from.paths.sandbox, 'case-a/pipe')]);
    const report = await copyHome({ from, to, keepSource: true });
    expect(report.verdict).toMatchObject({ verdict: 'by_hash_alone', problems: [] });
    expect(await dumpLedger(to)).toEqual(await dumpLedger(from));
    expect(lstatSync(join(to.paths.sandbox, 'case-a/link')).isSymbolicLink()).toBe(true);
    expect(existsSync(join(to.paths.sandbox, 'case-a/pipe'))).toBe(false);
    const keys = (paths: typeof to.paths) => readdirSync(paths.keys, { recursive: true }).map(String).sort();
    expect(keys(to.paths)).toEqual(keys(from.paths).filter((name) => !name.endsWith('.lock')));
    const reopened = await openTurnpike({ ...serviceOptions(folder, 5_000), home: to.paths.home });
    expect(reopened.recovery).toMatchObject({ settled: 1, interrupted: 1 });
    await reopened.close();
  });

  test('refuses a target that is not empty, or the source itself', async () => {
    mkdirSync(join(folder, 'full'));
    writeFileSync(join(folder, 'full', 'file'), 'content');
    await expect(copyHome({ from, to: at('full') })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(copyHome({ from, to: from })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(copyHome({ from: at('none'), to: at('new') })).rejects.toMatchObject({ code: 'USAGE' });
  });

  test('refuses a source that another process has open', async () => {
    const busy = cloned('open');
    const open = await openTurnpike({ ...serviceOptions(folder, 6_000), home: busy.paths.home });
    await expect(copyHome({ from: busy, to: at('new') })).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    await open.close();
  });

  test('an unfinished copy is not opened, not copied from another source, and is started again', async () => {
    const to = at('marked');
    mkdirSync(to.paths.home);
    createCopyMarker(to.paths.home, '/elsewhere');
    writeFileSync(`${to.paths.ledger}.copy`, 'a part');
    mkdirSync(to.paths.caseKeys, { recursive: true });
    writeFileSync(join(to.paths.caseKeys, 'case-old.1.key'), 'a key that the source no longer has');
    const refused = { code: 'LEDGER_UNAVAILABLE', message: expect.stringContaining('unfinished copy of /elsewhere') };
    await expect(openTurnpike({ home: to.paths.home, control: false })).rejects.toMatchObject(refused);
    const said = await turnpike(folder, ['ledger', 'verify', '--home', to.paths.home]);
    expect([said.code, said.stderr]).toEqual([3, expect.stringContaining('turnpike home copy')]);
    await expect(copyHome({ from, to })).rejects.toMatchObject({ code: 'USAGE' });
    await removeCopyMarker(to.paths.home);
    createCopyMarker(to.paths.home, locationText(from));
    await copyHome({ from, to, keepSource: true });
    expect(existsSync(join(to.paths.caseKeys, 'case-old.1.key'))).toBe(false);
    expect(await dumpLedger(to)).toEqual(await dumpLedger(from));
  });

  test('a home that was copied is read, and not written until it is opened again', async () => {
    const closed = cloned('closed');
    const open = ({ paths }: LedgerLocation, first: number) =>
      openTurnpike({ ...serviceOptions(folder, first), control: false, home: paths.home });
    await copyHome({ from: closed, to: at('continued') });
    const refused = { code: 'LEDGER_COPIED', message: expect.stringContaining('continued') };
    await expect(open(closed, 8_000)).rejects.toMatchObject(refused);
    writeFileSync(join(folder, 'one.jsonl'), '');
    const said = await turnpike(folder, ['run', 'one.jsonl', '--home', 'closed']);
    expect([said.code, said.stderr]).toEqual([3, expect.stringContaining('turnpike home reopen')]);
    expect((await turnpike(folder, ['runs', '--home', 'closed'])).code).toBe(0);
    await expect(copyHome({ from: closed, to: at('another') })).rejects.toMatchObject(refused);
    expect(existsSync(at('another').paths.home)).toBe(false);
    await (await open(at('continued'), 8_100)).close();
    const opened = await turnpike(folder, ['home', 'reopen', 'closed']);
    expect(opened).toMatchObject({ code: 0, stdout: expect.stringContaining('never write to') });
    expect((await turnpike(folder, ['home', 'reopen', 'closed', '--json'])).stdout).toBe(
      '{"reopened":false,"copy":null}\n',
    );
    await (await open(closed, 8_200)).close();
  });

  test('a copy that was interrupted after the mark of its source is finished, or the source is opened again', async () => {
    const [cut, to] = [cloned('cut'), at('cut-copy')];
    mkdirSync(to.paths.home);
    createCopyMarker(to.paths.home, locationText(cut));
    writeCopiedMark(cut.paths.home, locationText(to));
    const open = ({ paths }: LedgerLocation) =>
      openTurnpike({ ...serviceOptions(folder, 9_000), control: false, home: paths.home });
    for (const location of [cut, to]) await expect(open(location)).rejects.toThrow();
    await copyHome({ from: cut, to });
    await expect(open(cut)).rejects.toMatchObject({ code: 'LEDGER_COPIED' });
    await (await open(to)).close();
    expect(await reopenHome(cut)).toBe(locationText(to));
  });

  test.each([
    ['text-changed', `texts = replace(texts, 'case-a', 'case-x')`, 'refused'],
    ['entry-lost', `types = types || ' step_trace'`, 'LEDGER_TAMPERED'],
  ])('a source with damaged entries is not published: %s', async (what, change, outcome) => {
    const [bad, to] = [cloned(what), at(`${what}-copy`)];
    const db = new Database(bad.paths.ledger);
    withoutTriggers(db, ['blocks_update'], () => db.exec(`UPDATE blocks SET ${change} WHERE log_index = 0`));
    db.close();
    const copied = copyHome({ from: bad, to }).then(
      ({ verdict }) => verdict.verdict,
      (error: unknown) => (error as { code?: string }).code,
    );
    expect(await copied).toBe(outcome);
    await expect(openTurnpike({ home: to.paths.home, control: false })).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
    });
  });

  test('the command copies, verifies and reports', async () => {
    const said = await turnpike(folder, ['home', 'copy', from.paths.home, 'cli-copy', '--keep-source'], {
      stderrTTY: true,
    });
    expect(said).toMatchObject({ code: 4, stdout: expect.stringMatching(/^by hash alone: \d+ entries[^]*copied \d+/) });
    const json = await turnpike(folder, [
      'home',
      'copy',
      from.paths.home,
      'json-copy',
      '--json',
      '--no-sandbox',
      '--keep-source',
    ]);
    expect(JSON.parse(json.stdout)).toMatchObject({ verdict: { verdict: 'by_hash_alone' } });
    expect(readdirSync(join(folder, 'json-copy', 'sandbox'))).toEqual([]);
    const wrong = await turnpike(folder, ['home', 'copy', from.paths.home, 'postgres://localhost/x']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('folder')]);
    const odd = await turnpike(folder, ['home', 'copy', from.paths.home, 'new', '--to-schema', 'x']);
    expect(odd.code).toBe(2);
  });

  test('refuses tables of records in the database of the ledger, and an archived beginning', async () => {
    const withRecords = cloned('records');
    const db = new Database(withRecords.paths.ledger);
    db.exec('CREATE TABLE records_facts (id TEXT PRIMARY KEY) STRICT');
    db.close();
    await expect(copyHome({ from: withRecords, to: at('new') })).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('records_facts'),
    });
    const archived = cloned('archived');
    const file = join(folder, 'archive.jsonl');
    expect((await turnpike(folder, ['ledger', 'archive', file, '--home', archived.paths.home])).code).toBe(0);
    await expect(copyHome({ from: archived, to: at('new') })).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('archive files'),
    });
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });
});
