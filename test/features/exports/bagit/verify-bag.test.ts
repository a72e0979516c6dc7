// Every rule that a bag can violate, one change to a valid bag at a time.

import { describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { BAG_RULES, type BagRule } from '../../../../src/features/exports/bagit/bag-finding.js';
import { BAG_LIMITS, type BagLimits } from '../../../../src/features/exports/bagit/inventory.js';
import { BagError } from '../../../../src/core/errors.js';
import type { BagTree, BagTreeEntry } from '../../../../src/engine/ports/bag-tree.js';
import { tableOf } from '../../../docs/tables.js';
import { rulesOf, tree, verifyBag } from './material.js';

type Files = Record<string, string | Buffer>;

const digest = (algorithm: string, content: string | Buffer): string =>
  createHash(algorithm).update(content).digest('hex');
const listing = (algorithm: string, files: Files): string =>
  Object.entries(files)
    .map(([path, content]) => `${digest(algorithm, content)}  ${path}\n`)
    .join('');

/** A bag that is valid except for `changes`; the tag manifests are made after the changes. */
function bag(changes: Files = {}, payload: Files = { 'data/a.txt': 'a', 'data/b/c.txt': 'cc' }): Files {
  const tags: Files = {
    'bagit.txt': 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n',
    'bag-info.txt': 'Payload-Oxum: 3.2\n',
    'manifest-sha256.txt': listing('sha256', payload),
    'manifest-sha512.txt': listing('sha512', payload),
    ...changes,
  };
  return {
    ...tags,
    ...payload,
    'tagmanifest-sha256.txt': listing('sha256', tags),
    'tagmanifest-sha512.txt': listing('sha512', tags),
  };
}
const without = (files: Files, path: string): Files =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));
const v097 = { 'bagit.txt': 'BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n' };
const one = { 'data/a.txt': 'a', 'data/b/c.txt': 'cc' };
const manifest = (more: string): Files => ({ 'manifest-sha256.txt': listing('sha256', one) + more });
const a256 = digest('sha256', 'a');

/** The changes, and all rules that they violate. */
const CASES: readonly (readonly [string, Files, readonly BagRule[], Partial<BagLimits>?])[] = [
  ['no change', bag(), []],
  ['no bagit.txt', without(bag(), 'bagit.txt'), ['declaration.missing']],
  [
    'three lines in bagit.txt',
    bag({ 'bagit.txt': 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nx: y\n' }),
    ['declaration.malformed'],
  ],
  [
    'a byte order mark in bagit.txt',
    bag({ 'bagit.txt': '\ufeffBagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n' }),
    ['declaration.malformed', 'text.byte_order_mark'],
  ],
  [
    'version 2.0',
    bag({ 'bagit.txt': 'BagIt-Version: 2.0\nTag-File-Character-Encoding: UTF-8\n' }),
    ['declaration.version_unknown'],
  ],
  [
    'an unknown encoding',
    bag({ 'bagit.txt': 'BagIt-Version: 1.0\nTag-File-Character-Encoding: EBCDIC\n' }),
    ['declaration.encoding_unknown'],
  ],
  [
    'spaces before the colon in 0.97',
    bag({ 'bagit.txt': 'BagIt-Version : 0.97\nTag-File-Character-Encoding: UTF-8\n' }),
    ['declaration.loose_whitespace'],
  ],
  ['bytes that are not UTF-8', bag({ 'bag-info.txt': Buffer.from([0x61, 0x3a, 0x20, 0xff]) }), ['text.encoding']],
  [
    'bytes that are not ASCII',
    bag({ 'bagit.txt': 'BagIt-Version: 1.0\nTag-File-Character-Encoding: US-ASCII\n', 'bag-info.txt': 'a: ä\n' }),
    ['text.encoding'],
  ],
  ['a byte order mark in bag-info.txt', bag({ 'bag-info.txt': '\ufeffPayload-Oxum: 3.2\n' }), ['text.byte_order_mark']],
  [
    'no payload manifest',
    without(without(bag(), 'manifest-sha256.txt'), 'manifest-sha512.txt'),
    ['manifest.missing', 'tag.file_missing'],
  ],
  ['an unknown algorithm', bag({ 'manifest-crc32.txt': '' }), ['manifest.algorithm_unknown']],
  [
    'an algorithm in capitals',
    bag({ 'manifest-SHA256.txt': listing('sha256', one) }),
    ['manifest.algorithm_unknown', 'path.twin'],
  ],
  [
    'only MD5',
    without(
      without(
        {
          ...bag({ 'manifest-md5.txt': listing('md5', one) }),
          'tagmanifest-sha256.txt': listing('sha256', { ...v097, 'manifest-md5.txt': listing('md5', one) }).replace(
            /.*bagit.txt\n/,
            '',
          ),
          'tagmanifest-sha512.txt': listing('sha512', { 'manifest-md5.txt': listing('md5', one) }),
        },
        'manifest-sha256.txt',
      ),
      'manifest-sha512.txt',
    ),
    ['manifest.algorithm_weak', 'tag.file_unlisted'],
  ],
  ['a digest of the wrong length', bag(manifest(`${a256}0  data/a.txt\n`)), ['manifest.line_malformed']],
  ['an empty line', bag(manifest('\n')), ['manifest.line_blank']],
  ['a path that leads upwards', bag(manifest(`${a256}  data/../../a.txt\n`)), ['manifest.path_unfit']],
  ['an absolute path', bag(manifest(`${a256}  /etc/passwd\n`)), ['manifest.path_unfit']],
  ['a path with an escape', bag(manifest(`${a256}  data/\x1b[2J\n`)), ['manifest.path_unfit']],
  [
    'a tag file in a payload manifest',
    bag(manifest(`${digest('sha256', 'x')}  bag-info.txt\n`)),
    ['manifest.path_misplaced'],
  ],
  [
    'a payload file in a tag manifest',
    { ...bag(), 'tagmanifest-sha256.txt': `${String(bag()['tagmanifest-sha256.txt'])}${a256}  data/a.txt\n` },
    ['manifest.path_misplaced'],
  ],
  [
    'a tag manifest in a tag manifest',
    {
      ...bag(),
      'tagmanifest-sha256.txt': `${String(bag()['tagmanifest-sha256.txt'])}${a256}  tagmanifest-sha512.txt\n`,
    },
    ['manifest.path_misplaced'],
  ],
  [
    './ before a path',
    bag({ 'manifest-sha256.txt': listing('sha256', one).replace('data/a.txt', './data/a.txt') }),
    ['manifest.path_relative'],
  ],
  [
    'an asterisk before a path',
    bag({ 'manifest-sha256.txt': listing('sha256', one).replace(' data/a.txt', '*data/a.txt') }),
    ['manifest.path_asterisk'],
  ],
  ['an unencoded percent sign', bag({}, { 'data/5%': 'abc' }), ['info.oxum_mismatch', 'manifest.path_percent']],
  [
    'a name in another case in one manifest',
    bag({ 'manifest-sha256.txt': listing('sha256', one).replace('data/a.txt', 'data/A.txt') }),
    ['manifest.path_twin'],
  ],
  [
    'a name in another case with another digest',
    bag(manifest(`${digest('sha256', 'x')}  data/A.txt\n`)),
    ['manifest.contradictory', 'manifest.path_twin', 'payload.digest_mismatch'],
  ],
  ['the same line twice', bag(manifest(`${a256}  data/a.txt\n`)), ['manifest.repeated']],
  [
    'the same line twice in 0.97',
    bag({ ...v097, ...manifest(`${a256.toUpperCase()}\t\tdata/a.txt\n`) }),
    ['manifest.repeated_before_1_0'],
  ],
  [
    'two digests for one file',
    bag(manifest(`${digest('sha256', 'x')}  data/a.txt\n`)),
    ['manifest.contradictory', 'payload.digest_mismatch'],
  ],
  ['a missing file', without(bag(), 'data/a.txt'), ['info.oxum_mismatch', 'payload.file_missing']],
  [
    'a missing file that can be fetched',
    without(bag({ 'fetch.txt': 'http://x/ - data/a.txt\n' }), 'data/a.txt'),
    ['info.oxum_mismatch', 'payload.file_not_fetched'],
  ],
  ['a file that was fetched', bag({ 'fetch.txt': 'http://x/ 1 data/a.txt\n' }), []],
  ['a file that is not listed', { ...bag(), 'data/z': '' }, ['info.oxum_mismatch', 'payload.file_unlisted']],
  [
    'a file that only one manifest lists',
    bag({ 'manifest-sha256.txt': listing('sha256', { 'data/a.txt': 'a' }) }),
    ['payload.file_unlisted'],
  ],
  [
    'a file that only one manifest lists, in 0.97',
    bag({ ...v097, 'manifest-sha256.txt': listing('sha256', { 'data/a.txt': 'a' }) }),
    [],
  ],
  ['another content', { ...bag(), 'data/a.txt': 'b' }, ['payload.digest_mismatch']],
  ['a missing tag file', without(bag({ 'more.txt': '' }), 'more.txt'), ['tag.file_missing']],
  ['a tag file that is not listed', { ...bag(), 'more/tags.txt': '' }, ['tag.file_unlisted']],
  ['another tag file', { ...bag(), 'bag-info.txt': 'Payload-Oxum: 3.2 \n' }, ['tag.digest_mismatch']],
  [
    'no tag manifest',
    without(without(bag(), 'tagmanifest-sha256.txt'), 'tagmanifest-sha512.txt'),
    ['tag.manifest_missing'],
  ],
  [
    'a payload manifest that no tag manifest lists',
    { ...bag(), 'manifest-sha384.txt': listing('sha384', one) },
    ['tag.manifest_unlisted'],
  ],
  ['nonsense in fetch.txt', bag({ 'fetch.txt': 'x\n' }), ['fetch.line_malformed']],
  ['a path upwards in fetch.txt', bag({ 'fetch.txt': 'http://x/ - data/../x\n' }), ['fetch.path_unfit']],
  ['a tag file in fetch.txt', bag({ 'fetch.txt': 'http://x/ - bagit.txt\n' }), ['fetch.path_unfit']],
  ['a file in fetch.txt that is not listed', bag({ 'fetch.txt': 'http://x/ - data/z\n' }), ['fetch.path_unlisted']],
  ['nonsense in bag-info.txt', bag({ 'bag-info.txt': 'x\n' }), ['info.line_malformed']],
  ['a space before the colon', bag({ 'bag-info.txt': 'x : y\n' }), ['info.line_malformed']],
  ['an Oxum without files', bag({ 'bag-info.txt': 'payload-oxum: 3\n' }), ['info.oxum_malformed']],
  ['an Oxum of another payload', bag({ 'bag-info.txt': 'Payload-Oxum: 4.2\n' }), ['info.oxum_mismatch']],
  ['the Oxum twice', bag({ 'bag-info.txt': 'Payload-Oxum: 3.2\nPAYLOAD-OXUM: 3.2\n' }), ['info.oxum_repeated']],
  ['two files that differ in case', bag({ 'bag-info.txt': '' }, { 'data/a': '', 'data/A': '' }), ['path.twin']],
  [
    'two files that differ in normalization',
    bag({ 'bag-info.txt': '' }, { 'data/\u00e9': '', 'data/e\u0301': '' }),
    ['path.twin'],
  ],
  ['a name that Windows reserves', bag({ 'bag-info.txt': '' }, { 'data/con.txt': '' }), ['path.not_portable']],
  ['a file of a desktop system', bag({ 'bag-info.txt': '' }, { 'data/.DS_Store': '' }), ['path.system_file']],
  [
    'a file name with a backslash',
    bag({ 'bag-info.txt': '' }, { 'data/a\\b': '' }),
    ['manifest.path_unfit', 'tree.name_unfit'],
  ],
  ['too many files', bag(), ['tree.limit'], { entries_max: 8 }],
  ['too many bytes', bag(), ['tree.limit'], { bytes_max: 900 }],
  ['too many manifests', bag(), ['manifest.missing', 'tree.limit'], { manifests_max: 0 }],
  ['a large bagit.txt', bag(), ['tree.limit'], { declaration_bytes_max: 40 }],
  ['a large bag-info.txt', bag(), ['tree.limit'], { info_bytes_max: 4 }],
  ['a long line', bag(), ['tree.limit'], { line_characters_max: 130 }],
];

describe('verifyBag', () => {
  // With all four arguments: if one is missing, jest passes a callback and waits for it.
  test.each(CASES.map(([name, files, rules, limits = {}]) => [name, files, rules, limits] as const))(
    '%s',
    async (_name, files, rules, limits) => {
      const report = await verifyBag(tree(files), limits);
      const expected = rules.includes('tree.limit') ? expect.arrayContaining([...rules]) : [...rules].sort();
      expect(rulesOf(report)).toEqual(expected);
      expect(report.valid).toBe(rules.every((rule) => BAG_RULES[rule] === 'warning'));
    },
  );

  test('a manifest that is too large is not read', async () => {
    const report = await verifyBag(tree(bag()), { manifest_bytes_max: 200 });
    expect(report.findings).toContainEqual(
      expect.objectContaining({ rule_id: 'tree.limit', path: 'manifest-sha512.txt' }),
    );
  });

  test('findings are limited, and further ones are counted', async () => {
    const lines = Array.from({ length: 50 }, (_, index) => `${a256}  data/none-${index}\n`).join('');
    const report = await verifyBag(tree(bag(manifest(lines))), { findings_max: 10 });
    expect(report.findings).toHaveLength(10);
    expect(report.findings_dropped).toBe(40);
    expect((await verifyBag(tree(bag(manifest(lines))), { findings_max: 0 })).valid).toBe(false);
  });

  test('the payload directory must exist', async () => {
    const files = tree(bag({ 'manifest-sha256.txt': '', 'manifest-sha512.txt': '', 'bag-info.txt': '' }, {}));
    expect((await verifyBag(files)).valid).toBe(true);
    const report = await verifyBag({ ...files, entries: () => withoutDirectories(files) });
    expect(rulesOf(report)).toEqual(['payload.directory_missing']);
  });

  test('an entry that the tree rejects, or cannot read, is an error', async () => {
    const files = tree(bag());
    const link = { kind: 'refused', path: 'data/link', reason: 'symlink' } as const;
    expect(rulesOf(await verifyBag({ ...files, entries: () => plus(files, link) }))).toEqual(['tree.refused']);
    const message = 'it is gone';
    const read: BagTree['read'] = (path) => {
      if (path === 'data/a.txt') throw new BagError({ code: 'BAG_HOSTILE', message });
      return files.read(path);
    };
    const report = await verifyBag({ ...files, read });
    expect(report.findings).toEqual([{ severity: 'error', rule_id: 'tree.unreadable', path: 'data/a.txt', message }]);
  });

  test.each([-1, 1])('a file that is longer or shorter than announced is rejected (%d)', async (more) => {
    const files = tree(bag());
    const entries = async function* (): AsyncGenerator<BagTreeEntry> {
      for await (const entry of files.entries()) {
        yield entry.kind === 'file' && entry.path === 'data/b/c.txt' ? { ...entry, bytes: 2 + more } : entry;
      }
    };
    expect(rulesOf(await verifyBag({ ...files, entries }))).toEqual(['info.oxum_mismatch', 'tree.unreadable']);
  });

  test('every listed file is read once, and no other', async () => {
    const files = tree({ ...bag(), 'more.txt': 'x' });
    const read: string[] = [];
    await verifyBag({ ...files, read: (path) => (read.push(path), files.read(path)) });
    expect(read.sort()).toEqual(Object.keys(bag()).sort());
  });

  test('reports which bag it was', async () => {
    const files = bag({ 'bag-info.txt': 'Contact-Name: A\nContact-Name:\tB\n  and C\nPayload-Oxum: 3.2\n' });
    expect(await verifyBag(tree(files))).toEqual({
      valid: true,
      version: '1.0',
      encoding: 'UTF-8',
      algorithms: ['sha256', 'sha512'],
      payload: { files: 2, bytes: 3 },
      info: [
        { label: 'Contact-Name', value: 'A' },
        { label: 'Contact-Name', value: 'B and C' },
        { label: 'Payload-Oxum', value: '3.2' },
      ],
      tag_manifest_sha256: digest('sha256', String(files['tagmanifest-sha256.txt'])),
      findings: [],
      findings_dropped: 0,
    });
  });
});

describe('the registry', () => {
  const ELSEWHERE: readonly BagRule[] = ['payload.directory_missing', 'tree.refused', 'tree.unreadable'];

  test('every rule is violated by some case', () => {
    const violated = new Set([...CASES.flatMap(([, , rules]) => rules), ...ELSEWHERE]);
    expect([...violated].sort()).toEqual(Object.keys(BAG_RULES).sort());
  });

  test('docs/errors.md has every rule with its severity', () => {
    expect(tableOf('docs/errors.md', 'bag-rules').map(([rule, severity]) => [rule, severity])).toEqual(
      Object.entries(BAG_RULES),
    );
  });

  test('every limit is bounded', () => {
    expect(Object.values(BAG_LIMITS).filter((limit) => !Number.isSafeInteger(limit) || limit <= 0)).toEqual([]);
  });
});

async function* withoutDirectories(files: BagTree): AsyncGenerator<BagTreeEntry> {
  for await (const entry of files.entries()) if (entry.kind === 'file') yield entry;
}
async function* plus(files: BagTree, more: BagTreeEntry): AsyncGenerator<BagTreeEntry> {
  yield* files.entries();
  yield more;
}
