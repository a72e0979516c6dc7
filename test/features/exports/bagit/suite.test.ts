// The bags of the Library of Congress (RFC 8493 and its drafts), one test per bag.

import { afterAll, describe, expect, test } from '@jest/globals';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { suite } from '../../../fixtures/suites.js';
import { place, rulesOf, verifyFolder } from './material.js';

const SUITE = suite('bagit-conformance');
const directory = place();
afterAll(directory.remove);

const namesIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => statSync(`${folder}/${name}`).isDirectory())
    .sort();

const BAGS = (SUITE === null ? [] : namesIn(SUITE)).flatMap((version) =>
  namesIn(`${SUITE}/${version}`).flatMap((verdict) =>
    namesIn(`${SUITE}/${version}/${verdict}`).map((name) => `${version}/${verdict}/${name}`),
  ),
);
const bagsOf = (verdict: RegExp): readonly string[] => BAGS.filter((name) => verdict.test(name));
/** For `test.each`, which rejects an empty table even if it is skipped. */
const eachOf = (verdict: RegExp): readonly string[] => (SUITE === null ? ['none'] : bagsOf(verdict));
const SYSTEM_FILES = 'v0.97/warning/special-system-files';

/** The bag as its authors intended it. */
function bag(name: string): string {
  const folder = `${SUITE}/${name}`;
  if (name !== SYSTEM_FILES || existsSync(`${folder}/data/.DS_Store`)) return folder;
  // An empty file that copying tools omit; its manifest and its Payload-Oxum list it.
  const empty = createHash('sha512').update('').digest('hex');
  expect(readFileSync(`${folder}/manifest-sha512.txt`, 'utf8')).toContain(`${empty}  data/.DS_Store`);
  const copy = directory.at('special-system-files');
  cpSync(folder, copy, { recursive: true });
  writeFileSync(`${copy}/data/.DS_Store`, '');
  return copy;
}

const ifThere = SUITE === null ? describe.skip : describe;

ifThere('the conformance suite of BagIt', () => {
  test('has 54 bags that apply here, and 6 for Windows', () => {
    expect(bagsOf(/\/windows-only\//)).toHaveLength(6);
    expect(BAGS).toHaveLength(60);
  });

  test.each(eachOf(/\/valid\//))('%s', async (name) => {
    const report = await verifyFolder(bag(name));
    expect(rulesOf(report, 'error')).toEqual([]);
    expect(report.valid).toBe(true);
    expect(report.version).toBe(/^v([\d.]+)/.exec(name)?.[1]);
    expect(report.payload.files).toBeGreaterThan(0);
  });

  test.each(eachOf(/\/warning\//))('%s', async (name) => {
    const report = await verifyFolder(bag(name));
    expect(rulesOf(report, 'error')).toEqual([]);
    expect(rulesOf(report, 'warning')).toContain(WARNINGS[name.split('/')[2] ?? '']);
  });

  // Including those for Windows: here their paths to the outside are not below data/.
  test.each(eachOf(/\/(?:invalid|linux-only|windows-only)\//))('%s', async (name) => {
    const report = await verifyFolder(bag(name));
    expect(report.valid).toBe(false);
    expect(rulesOf(report, 'error')).toEqual(errorsOf(name));
  });

  test('a missing file is found', async () => {
    if (existsSync(`${SUITE}/${SYSTEM_FILES}/data/.DS_Store`)) return;
    const report = await verifyFolder(`${SUITE}/${SYSTEM_FILES}`);
    expect(rulesOf(report, 'error')).toEqual(['info.oxum_mismatch', 'payload.file_missing']);
  });
});

const WARNINGS: Readonly<Record<string, string>> = {
  'duplicate-file-with-different-case': 'manifest.path_twin',
  'made-with-md5sum-tools': 'manifest.path_asterisk',
  'relative-path': 'manifest.path_relative',
  'same-filename-listed-twice-with-different-normalization': 'manifest.path_twin',
  'same-filename-listed-twice-with-the-same-hash': 'manifest.repeated_before_1_0',
  'special-system-files': 'path.system_file',
};

/** The exact findings of each bag: a bag rejected for an unrelated reason would prove nothing. */
const ERRORS: Readonly<Record<string, readonly string[]>> = {
  'baginfo-missing-encoding': ['declaration.malformed'],
  'bom-in-bagit.txt': ['declaration.malformed'],
  'corrupt-data-file': ['info.oxum_mismatch', 'payload.digest_mismatch'],
  'corrupt-tag-file': ['tag.digest_mismatch'],
  'extra-file-in-bag': ['info.oxum_mismatch', 'payload.file_unlisted'],
  'invalid-version-number': ['declaration.malformed'],
  'missing-baginfo': ['tag.file_missing'],
  'missing-bagit.txt': ['declaration.missing'],
  'same-filename-listed-twice-with-different-hashes': ['manifest.contradictory', 'payload.digest_mismatch'],
  'bagit-with-invalid-whitespace': ['declaration.malformed'],
  notAllManifestsListAllFiles: ['payload.file_unlisted'],
  'same-filename-listed-twice-with-the-same-hash': ['manifest.repeated', 'tag.digest_mismatch'],
};

function errorsOf(name: string): readonly string[] | undefined {
  // The space after its version is found first: the bag of 0.97 tests what its name says.
  if (name === 'v1.0/invalid/same-filename-listed-twice-with-different-hashes') return ['declaration.malformed'];
  const [, , own = ''] = name.split('/');
  if (own.startsWith('out-of-scope-file-paths'))
    return [own.endsWith('-for-fetch') ? 'fetch.path_unfit' : 'manifest.path_unfit'];
  return ERRORS[own];
}
