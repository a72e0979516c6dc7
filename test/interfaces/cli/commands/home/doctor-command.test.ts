// `turnpike doctor` on real homes, each with one thing wrong.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { sha256 } from '../../../../../src/core/contract/hash.js';
import { openTurnpike } from '../../../../../src/host/turnpike.js';
import type { DoctorFinding } from '../../../../../src/features/doctor/examine.js';
import { copyOf, finish, initialised, jsonLines, think, turnpike, write } from '../../fake-io.js';

let model: string;

beforeAll(async () => {
  model = await initialised();
  const stdin = [write('/sandbox/a.txt', 'a'), think(), finish()].join('\n');
  expect(await turnpike(model, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
});

const copy = (): string => copyOf(model);
const home = (place: string, name = ''): string => join(place, '.turnpike', name);

async function examine(place: string) {
  const { code, stdout, stderr } = await turnpike(place, ['doctor', '--json']);
  expect(stderr).toBe('');
  const findings = jsonLines<DoctorFinding>(stdout);
  return { code, findings, problems: findings.filter(({ level }) => level === 'problem') };
}

const contentOf = (place: string): readonly string[] =>
  readdirSync(home(place), { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(home(place, name)).isFile())
    .map((name) => `${name} ${sha256(readFileSync(home(place, name)))}`)
    .sort();

describe('doctor', () => {
  test('finds nothing wrong in a home, closed or in use, and changes nothing', async () => {
    const place = copy();
    const before = contentOf(place);
    expect(await examine(place)).toMatchObject({ code: 0, problems: [] });
    const after = contentOf(place).filter((line) => !/^ledger\.db-(?:shm|wal) /.test(line));
    expect(after).toEqual(before.filter((line) => !/^ledger\.db-(?:shm|wal) /.test(line)));
    const service = await openTurnpike({ home: home(place) });
    const agent = await service.startAgent({ case: 'case-local', link: 'remote' });
    expect(await examine(place)).toMatchObject({ code: 0, problems: [] });
    await agent.end();
    await service.close();
    const said = await turnpike(place, ['doctor']);
    expect([said.code, said.stdout]).toEqual([0, expect.stringMatching(/^versions +ok +turnpike/)]);
  });

  test('finds nothing wrong in a home whose entries are all archived', async () => {
    const place = copy();
    expect(await turnpike(place, ['ledger', 'archive', 'old.jsonl'])).toMatchObject({ code: 0 });
    expect(await examine(place)).toMatchObject({ code: 0, problems: [] });
    expect(await turnpike(place, ['run', '-'], { stdin: think() })).toMatchObject({ code: 0 });
    expect(await examine(place)).toMatchObject({ code: 0, problems: [] });
  });

  test('names keys and folders that other users can reach, with the command that ends it', async () => {
    const place = copy();
    chmodSync(home(place, 'keys'), 0o755);
    const { code, problems } = await examine(place);
    expect([code, problems]).toEqual([
      1,
      [{ subject: 'permissions', level: 'problem', text: expect.stringMatching(/keys: run chmod go-rwx/) }],
    ]);
  });

  test('names keys that Git tracks', async () => {
    const place = copy();
    const git = (...argv: string[]) => execFileSync('git', ['-C', place, ...argv], { stdio: 'pipe' });
    git('init', '-q');
    expect(await examine(place)).toMatchObject({ code: 0 });
    git('add', '-f', '.turnpike/keys/ledger.key');
    expect((await examine(place)).problems).toEqual([
      { subject: 'keys', level: 'problem', text: expect.stringContaining('ledger.key') },
    ]);
  });

  test.each([
    ['a lost ledger key', 'keys', (place: string) => rmSync(home(place, 'keys/ledger.key'))],
    ['the public half of another key', 'keys', (place: string) => replaceKey(place)],
    [
      'a changed list of erasures',
      'keys',
      (place: string) => {
        mkdirSync(home(place, 'keys/cases'), { recursive: true });
        writeFileSync(home(place, 'keys/cases/erasures.list'), 'turnpike-erasures 1\n"a forged record"\n', {
          mode: 0o600,
        });
      },
    ],
    ['a missing head file', 'ledger', (place: string) => rmSync(home(place, 'ledger.head'))],
    [
      'a head that the ledger is behind',
      'ledger',
      (place: string) => {
        const db = new Database(home(place, 'ledger.db'));
        db.exec('DROP TRIGGER IF EXISTS blocks_delete; DROP TRIGGER IF EXISTS meta_update');
        db.exec('DELETE FROM blocks WHERE log_index = (SELECT max(log_index) FROM blocks)');
        db.close();
      },
    ],
    [
      'a policy that does not load',
      'settings',
      (place: string) => {
        writeFileSync(join(place, 'contract/policy/lanes.yaml'), 'lanes: none\n');
      },
    ],
  ] as const)('names %s', async (_name, subject, spoil) => {
    const place = copy();
    spoil(place);
    const { code, problems } = await examine(place);
    expect(code).toBe(1);
    expect(problems.map((one) => one.subject)).toContain(subject);
  });

  test('reports a ledger of a later format as not supported', async () => {
    const place = copy();
    const db = new Database(home(place, 'ledger.db'));
    db.pragma('user_version = 99');
    db.close();
    const { code, findings, problems } = await examine(place);
    expect([code, problems]).toEqual([4, []]);
    const text = expect.stringMatching(/^LEDGER_UNSUPPORTED: .* format 99/);
    expect(findings).toContainEqual({ subject: 'ledger', level: 'unchecked', text });
  });

  test('names a clock that is behind the newest entry', async () => {
    const place = copy();
    const clock = { now: () => Date.parse('2199-01-01T00:00:00.000Z'), wake: () => () => undefined };
    const later = await openTurnpike({ home: home(place), clock });
    await (await later.startAgent({ case: 'case-local' })).end();
    await later.close();
    expect((await examine(place)).problems).toEqual([
      { subject: 'clock', level: 'problem', text: expect.stringContaining('2199') },
    ]);
  });
});

function replaceKey(place: string): void {
  const path = home(place, 'keys/ledger.vkey');
  const text = readFileSync(path, 'utf8').trim();
  const [name = '', hash = '', key = ''] = text.split('+');
  writeFileSync(path, `${name}x+${hash}+${key}\n`);
}
