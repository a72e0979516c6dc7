// What a later version with other formats would leave on a disk is refused as not supported: a home, its head file, a
// list of erasures, a bundle, a proof, a backup and a bag of this version, each with the next number. Nothing of it
// counts as altered.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { headFile } from '../../src/stores/ledger/head-file.js';
import type { DoctorFinding } from '../../src/features/doctor/examine.js';
import { goodBundle } from '../features/exports/bundle-changes.js';
import { sealed } from '../features/exports/material.js';
import { finish, initialised, jsonLines, turnpike } from '../interfaces/cli/fake-io.js';

let folder: string;
let home: string;
let key: string;
const at = (name: string): string => join(folder, name);

function replaceText(name: string, from: string, to: string): void {
  const text = readFileSync(at(name), 'latin1');
  expect(text).toContain(from);
  writeFileSync(at(name), text.replaceAll(from, to), 'latin1');
}

beforeAll(async () => {
  folder = await initialised();
  home = join(folder, '.turnpike');
  expect(await turnpike(folder, ['run', '-'], { stdin: finish() })).toMatchObject({ code: 0 });
  key = readFileSync(join(home, 'keys/ledger.vkey'), 'utf8').trim();
  for (const argv of [
    ['ledger', 'export', 'later.jsonl'],
    ['backup', 'later-backup', '--with-keys'],
  ])
    expect(await turnpike(folder, [...argv, '--home', home])).toMatchObject({ code: 0 });
  replaceText('later.jsonl', '"turnpike-evidence/1"', '"turnpike-evidence/2"');
  replaceText('later-backup/backup.manifest', 'turnpike-backup 1\n', 'turnpike-backup 2\n');
  const bag = await goodBundle(at('bag'));
  const info = bag['bag-info.txt']!.toString().replace('Turnpike-Bag-Format: 1', 'Turnpike-Bag-Format: 2');
  const later = sealed({ ...bag, 'bag-info.txt': Buffer.from(info), 'data/proof.json': Buffer.from('{}') });
  for (const [name, content] of Object.entries(later)) {
    const path = join(at('later-bag'), name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  }
  cpSync(home, at('later'), { recursive: true });
  const db = new Database(at('later/ledger.db'));
  db.pragma('user_version = 2');
  db.close();
  cpSync(home, at('later-head'), { recursive: true });
  replaceText('later-head/ledger.head', 'turnpike-head 1 ', 'turnpike-head 2 ');
  cpSync(home, at('later-erasures'), { recursive: true });
  mkdirSync(at('later-erasures/keys/cases'), { recursive: true });
  writeFileSync(at('later-erasures/keys/cases/erasures.list'), 'turnpike-erasures 2\n', { mode: 0o600 });
  mkdirSync(at('later-store'));
  writeFileSync(at('later-store/store.json'), '{"version":2,"url":"postgres://db/ledger"}', { mode: 0o600 });
  writeFileSync(at('later-proof.json'), '{"format":"turnpike/consistency-proof@v2","proof":{}}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['a command that reads the home', () => ['runs', '--home', 'later']],
  ['a command that writes to the home', () => ['ledger', 'export', 'new.jsonl', '--home', 'later']],
  ['the verification of the ledger', () => ['ledger', 'verify', '--home', 'later']],
  ['an archive', () => ['ledger', 'archive', 'new.jsonl', '--home', 'later']],
  ['a backup', () => ['backup', 'new-backup', '--home', 'later']],
  ['the service', () => ['serve', '--home', 'later', '--port', '0']],
  ['the verification of a ledger with its head file', () => ['ledger', 'verify', '--home', 'later-head']],
  ['the verification of a bundle with its key', () => ['ledger', 'verify', 'later.jsonl', '--key', key]],
  ['the replay of a bundle', () => ['replay', 'later.jsonl']],
  ['the verification of a bag', () => ['export', 'verify', 'later-bag']],
  [
    'the verification of a bag whose proof this version cannot read, with a key',
    () => ['export', 'verify', 'later-bag', '--key', key],
  ],
  ['the check of a proof', () => ['ledger', 'check-proof', 'later-proof.json', '--key', key]],
  ['a command with the home of a shared ledger', () => ['runs', '--home', 'later-store']],
  [
    'an erasure with a later list of erasures',
    () => ['ledger', 'erase', 'case-local', '--home', 'later-erasures', '--actor', 'otto operator', '--yes'],
  ],
  ['a restore', () => ['restore', 'later-backup', '--home', 'new', '--actor', 'otto operator', '--no-erasures']],
])('%s is refused with exit code 4, and names the version to use', async (_what, argv) => {
  const { code, stdout, stderr } = await turnpike(folder, argv());
  expect({ code, stdout, stderr }).toEqual({
    code: 4,
    stdout: '',
    stderr: expect.stringMatching(/^LEDGER_UNSUPPORTED: .* has format 2, .* knows 1: use the version that wrote it/m),
  });
});

test('doctor reports the ledger as not checked', async () => {
  const { code, stdout } = await turnpike(folder, ['doctor', '--home', 'later', '--json']);
  expect(code).toBe(4);
  expect(jsonLines<DoctorFinding>(stdout)).toContainEqual({
    subject: 'ledger',
    level: 'unchecked',
    text: expect.stringContaining('LEDGER_UNSUPPORTED: the ledger has format 2'),
  });
});

test('a head file with one slot that only seems to be later counts with its other slot', async () => {
  const path = at('one-slot.head');
  const file = headFile(path);
  const head = (size: number) => ({ size, root: String(size).padStart(64, '0') });
  await file.write(head(1));
  await file.write(head(2));
  await file.close();
  replaceText('one-slot.head', 'turnpike-head 1 head 2 ', 'turnpike-head 3 head 2 ');
  expect(await headFile(path).read()).toMatchObject({ size: 1 });
});
