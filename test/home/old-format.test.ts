// What a version before the formats began again at 1 left on a disk (test/fixtures/homes/make-old.mjs) is refused as
// not supported. Nothing of it is changed, and nothing of it counts as altered.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { headFile } from '../../src/stores/ledger/head-file.js';
import type { DoctorFinding } from '../../src/features/doctor/examine.js';
import { jsonLines, turnpike } from '../interfaces/cli/fake-io.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const OLD = JSON.parse(
  gunzipSync(readFileSync(join(ROOT, 'test/fixtures/homes/old.json.gz'))).toString('utf8'),
) as Readonly<Record<string, string>>;

let folder: string;
beforeEach(() => {
  folder = tempFolder('old-format');
  for (const [name, content] of Object.entries(OLD)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, name), Buffer.from(content, 'base64'), { mode: 0o600 });
  }
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const KEY = Buffer.from(OLD['home/keys/ledger.vkey'] ?? '', 'base64')
  .toString('utf8')
  .trim();

test.each([
  ['a command that reads the home', ['runs', '--home', 'home']],
  ['the inspection of the ledger', ['replay', '--until', '@0', '--home', 'home']],
  ['an export of evidence', ['ledger', 'export', 'new.jsonl', '--home', 'home']],
  ['an archive', ['ledger', 'archive', 'new.jsonl', '--home', 'home']],
  ['a backup', ['backup', 'new-backup', '--home', 'home']],
  [
    'a rotation of the key',
    ['keys', 'rotate', '--signing', '--actor', 'otto', '--role', 'SYSTEM_ADMIN', '--home', 'home'],
  ],
  ['the service', ['serve', '--home', 'home', '--port', '0']],
  ['a command that writes to the home', ['run', 'none.jsonl', '--home', 'home']],
  ['the verification of the ledger', ['ledger', 'verify', '--home', 'home']],
  ['the verification of an evidence bundle with its key', ['ledger', 'verify', 'evidence.jsonl', '--key', KEY]],
  ['the replay of an evidence bundle', ['replay', 'evidence.jsonl']],
  ['the verification of a bag with its key', ['export', 'verify', 'exports/bag.zip', '--key', KEY]],
  ['the verification of a bag without a key', ['export', 'verify', 'exports/bag.zip']],
  ['the restore of a backup', ['restore', 'backup', '--home', 'new', '--actor', 'otto operator', '--no-erasures']],
])('%s is refused with exit code 4, names the way out, and changes nothing', async (_what, argv) => {
  writeFileSync(join(folder, 'none.jsonl'), '');
  const { code, stdout, stderr } = await turnpike(folder, argv);
  expect({ code, stdout, stderr }).toEqual({
    code: 4,
    stdout: '',
    stderr: expect.stringMatching(/^LEDGER_UNSUPPORTED: .*`turnpike ledger export` of that version/m),
  });
  for (const [name, content] of Object.entries(OLD))
    expect([name, readFileSync(join(folder, name)).toString('base64')]).toEqual([name, content]);
});

test('doctor reports it as not checked, and nothing of it as altered', async () => {
  const { code, stdout } = await turnpike(folder, ['doctor', '--home', 'home', '--json']);
  const findings = jsonLines<DoctorFinding>(stdout);
  expect(code).toBe(4);
  expect(findings.filter(({ subject }) => subject === 'format' || subject === 'ledger')).toEqual([
    {
      subject: 'ledger',
      level: 'unchecked',
      text: expect.stringMatching(/^LEDGER_UNSUPPORTED: .*`turnpike ledger export` of that version/),
    },
  ]);
  expect(findings.filter(({ level }) => level === 'problem')).toEqual([]);
});

test('its head file is refused, not damaged', async () => {
  await expect(headFile(join(folder, 'home/ledger.head')).read()).rejects.toMatchObject({ code: 'LEDGER_UNSUPPORTED' });
});
