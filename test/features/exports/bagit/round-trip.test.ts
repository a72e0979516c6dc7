// A written bag reads back unchanged, as a directory and as an archive; later changes are found.

import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  writeSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { crc32 } from 'node:zlib';
import { openBagZip } from '../../../../src/features/exports/bag/bag-zip.js';
import { centralHeader, endRecords, localHeader } from '../../../../src/features/exports/bag/zip-format.js';
import { createBagFolder, createBagZip } from '../../../../src/features/exports/bag/create-bag.js';
import { writeBag, type PayloadFile } from '../../../../src/features/exports/bagit/write-bag.js';
import { sized } from '../../../fixtures/campaign.js';
import { character } from '../../../fixtures/characters.js';
import { forgeZip, OPTIONS, payloadOf, place, rulesOf, verifyFolder, verifyZip } from './material.js';

const directory = place();
afterAll(directory.remove);

const FILES = {
  'artifacts/one.bin': Buffer.alloc(200_000, 7),
  'case.json': '{}',
  'events.jsonl': '{"seq":1}\n',
  empty: '',
};
const asFolder = async (name: string, files: Readonly<Record<string, string | Uint8Array>>) =>
  await writeBag(createBagFolder(directory.at(name)), payloadOf(files), OPTIONS);
const asZip = async (name: string, files: Readonly<Record<string, string | Uint8Array>>) =>
  await writeBag(await createBagZip(directory.at(name), 'bag'), payloadOf(files), OPTIONS);
const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
    .sort();

describe('a written bag', () => {
  test('is valid, and the same, as a directory and as an archive', async () => {
    const written = await asFolder('one', FILES);
    expect(await asZip('one.zip', FILES)).toEqual(written);
    const report = await verifyFolder(directory.at('one'));
    expect(report).toMatchObject({ valid: true, version: '1.0', algorithms: ['sha256', 'sha512'], findings: [] });
    expect(await verifyZip(directory.at('one.zip'))).toEqual(report);
    expect(report.payload).toEqual({ files: 4, bytes: 200_012 });
    expect(report.tag_manifest_sha256).toBe(written.tag_manifest_sha256);
    expect(report.info.map(({ label, value }) => `${label}: ${value}`)).toEqual([
      'Source-Organization: Turnpike',
      'Bagging-Date: 2026-11-22',
      'Payload-Oxum: 200012.4',
    ]);
  });

  // Byte for byte: a change here would change the digest of every bag written before.
  test('has exactly the golden bytes', async () => {
    await asZip('golden.zip', { 'a.txt': 'a', 'b/ü %.txt': 'b' });
    expect(sha256(directory.at('golden.zip'))).toBe('5e1af43c2b73eabd58461aa87bd62575bd24a5e8fe11699724062b248fd0c48c');
  });

  test('is the same, byte for byte, at any time and in pieces of any size', async () => {
    await asZip('again-1.zip', FILES);
    const pieces = async function* (): AsyncGenerator<PayloadFile> {
      for await (const { path, content } of payloadOf(FILES)) {
        const whole = content as Uint8Array;
        // One buffer for all pieces, as a file reader may use.
        const shared = Buffer.alloc(1_000);
        const parts = async function* (): AsyncGenerator<Uint8Array> {
          for (let at = 0; at < whole.length; at += 1_000) {
            const length = Buffer.from(whole).copy(shared, 0, at, at + 1_000);
            yield await Promise.resolve(shared.subarray(0, length));
          }
        };
        yield { path, content: parts() };
      }
    };
    const zone = process.env['TZ'];
    process.env['TZ'] = 'America/Sao_Paulo';
    await writeBag(await createBagZip(directory.at('again-2.zip'), 'bag'), pieces(), OPTIONS);
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
    expect(sha256(directory.at('again-2.zip'))).toBe(sha256(directory.at('again-1.zip')));
    await asFolder('again', FILES);
    for (const path of filesIn(directory.at('again')))
      expect(statSync(directory.at(`again/${path}`)).mtimeMs).toBe(315_532_800_000);
  });

  test('has no extra file: no draft remains', () => {
    expect(readdirSync(directory.at('.')).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('without payload is valid', async () => {
    await asFolder('nothing', {});
    await asZip('nothing.zip', {});
    expect((await verifyFolder(directory.at('nothing'))).findings).toEqual([]);
    expect((await verifyZip(directory.at('nothing.zip'))).findings).toEqual([]);
  });
});

describe('names', () => {
  const awkward = fc.constantFrom(
    '%',
    '%25',
    '%0A',
    '%0d',
    '\r',
    '\n',
    '\r\n',
    ' ',
    '  ',
    'é',
    'e\u0301',
    '😀',
    '*',
    '~',
    '.',
    'ß',
    '"',
    "'",
    ':',
    '\u202e',
  );
  const name = fc
    .array(fc.oneof(awkward, fc.string({ maxLength: 3 }), fc.string({ unit: character, maxLength: 3 })), {
      minLength: 1,
      maxLength: 12,
    })
    .map((parts) => parts.join('').replace(/[\0-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\\/\ufffd]/g, 'x'))
    .filter(
      (text) => text !== '' && text !== '.' && text !== '..' && text.isWellFormed() && Buffer.byteLength(text) < 250,
    );
  const long = fc.constantFrom('x'.repeat(255), '%'.repeat(255), 'é'.repeat(127));
  const path = fc
    .array(fc.oneof({ weight: 20, arbitrary: name }, { weight: 1, arbitrary: long }), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join('/'));
  const paths = fc
    .uniqueArray(path, { minLength: 1, maxLength: 6 })
    .map((list) => list.filter((one) => !list.some((other) => other.startsWith(`${one}/`))));

  test('of any valid path round-trip', async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(paths, async (list) => {
        count += 1;
        const files = Object.fromEntries(list.map((one) => [one, one]));
        await asFolder(`names-${count}`, files);
        await asZip(`names-${count}.zip`, files);
        for (const report of [
          await verifyFolder(directory.at(`names-${count}`)),
          await verifyZip(directory.at(`names-${count}.zip`)),
        ]) {
          expect(rulesOf(report, 'error')).toEqual([]);
          expect(report.payload.files).toBe(list.length);
        }
        for (const one of list) expect(readFileSync(directory.at(`names-${count}/data/${one}`), 'utf8')).toBe(one);
        rmSync(directory.at(`names-${count}`), { recursive: true });
      }),
      { numRuns: sized(12, 60) },
    );
  });

  test.each(['../x', '/x', 'a//b', 'a/./b', 'a\\b', 'a\u0007', 'a\0', '', 'a/', '\ud800', `${'a/'.repeat(70)}a`])(
    'that are invalid are rejected: %j',
    async (path) => {
      await expect(asFolder('unfit', { [path]: '' })).rejects.toMatchObject({ code: 'USAGE' });
      await expect(asZip('unfit.zip', { [path]: '' })).rejects.toMatchObject({ code: 'USAGE' });
      expect(readdirSync(directory.at('.')).filter((name) => /unfit|partial/.test(name))).toEqual([]);
    },
  );
});

describe('a changed bag', () => {
  test('every changed bit, missing file and extra file is found', async () => {
    await asFolder('changed', FILES);
    const bag = directory.at('changed');
    const names = filesIn(bag);
    expect(names).toHaveLength(10);
    for (const name of names) {
      const bytes = readFileSync(`${bag}/${name}`);
      if (bytes.length > 0) {
        for (const at of [0, bytes.length >> 1, bytes.length - 1]) {
          const flipped = Buffer.from(bytes);
          flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at);
          writeFileSync(`${bag}/${name}`, flipped);
          expect([name, at, (await verifyFolder(bag)).valid]).toEqual([name, at, false]);
        }
        writeFileSync(`${bag}/${name}`, bytes);
      }
      renameSync(`${bag}/${name}`, directory.at('away'));
      const report = await verifyFolder(bag);
      // Without one of two tag manifests it is still a valid bag; only its digest shows that it is another one.
      if (!name.startsWith('tagmanifest-')) expect([name, report.valid]).toEqual([name, false]);
      renameSync(directory.at('away'), `${bag}/${name}`);
    }
    mkdirSync(`${bag}/data/more`);
    expect((await verifyFolder(bag)).valid).toBe(true);
    writeFileSync(`${bag}/data/more/x`, '');
    expect(rulesOf(await verifyFolder(bag))).toEqual(['info.oxum_mismatch', 'payload.file_unlisted']);
  });

  test('every changed bit of the content of an archive is found', async () => {
    await asZip('bits.zip', { 'a.txt': 'abc' });
    const bytes = readFileSync(directory.at('bits.zip'));
    const at = bytes.indexOf('abc');
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(directory.at('bits.zip'), bytes);
    expect(rulesOf(await verifyZip(directory.at('bits.zip')))).toEqual(['tree.unreadable']);
  });

  test('a compressed archive of another tool, without directory entries, is readable', async () => {
    await asFolder('foreign', FILES);
    const bag = directory.at('foreign');
    const entries = filesIn(bag).map((name) => ({ name, content: readFileSync(`${bag}/${name}`), deflate: true }));
    writeFileSync(directory.at('foreign.zip'), forgeZip(entries));
    expect((await verifyZip(directory.at('foreign.zip'))).findings).toEqual([]);
  });
});

describe('a large archive', () => {
  test('an entry beyond 4 GiB is found', async () => {
    const far = 5 * 2 ** 30;
    const record = { name: 'bag/bagit.txt', crc: crc32('x'), bytes: 1, offset: far };
    const local = Buffer.concat([localHeader(record), Buffer.from('x')]);
    // Two sparse entries of 5 GiB come before it and take no space.
    const header = localHeader({ name: 'bag/data/0', crc: 0, bytes: 0 }).length;
    const half = far / 2 - header;
    const holes = [0, 1].map((n) => ({ name: `bag/data/${n}`, crc: 0, bytes: half, offset: (n * far) / 2 }));
    const list = Buffer.concat([...holes, record].map(centralHeader));
    const end = endRecords({ entries: 3, offset: far + local.length, bytes: list.length });
    const file = openSync(directory.at('far.zip'), 'w');
    for (const hole of holes) writeSync(file, localHeader(hole), 0, null, hole.offset);
    writeSync(file, Buffer.concat([local, list, end]), 0, null, far);
    closeSync(file);
    const tree = await openBagZip(directory.at('far.zip'));
    const found: unknown[] = [];
    for await (const entry of tree.entries()) found.push(entry);
    for await (const chunk of tree.read('bagit.txt')) found.push(Buffer.from(chunk).toString());
    await tree.close();
    expect(found.slice(2)).toEqual([{ kind: 'file', path: 'bagit.txt', bytes: 1 }, 'x']);
  });
});

describe('a writer', () => {
  const inOrder = async function* (paths: readonly string[]): AsyncGenerator<PayloadFile> {
    for (const path of paths) yield await Promise.resolve({ path, content: Buffer.from(path) });
  };
  const writing = async (paths: readonly string[]) =>
    await writeBag(createBagFolder(directory.at('writer')), inOrder(paths), OPTIONS);

  test.each([[['b', 'a']], [['a', 'a']], [['a', 'a!', 'a/b']]])(
    'rejects unordered, repeated and conflicting paths: %j',
    async (paths) => {
      await expect(writing(paths)).rejects.toMatchObject({ code: 'USAGE' });
      expect(existsSync(directory.at('writer'))).toBe(false);
    },
  );

  test.each([
    [{ bagging_date: 'today' }],
    [{ bagging_date: '2026-11-22', info: [{ label: 'a:b', value: '' }] }],
    [{ bagging_date: '2026-11-22', info: [{ label: 'a', value: 'b\nPayload-Oxum: 0.0' }] }],
    [{ bagging_date: '2026-11-22', info: [{ label: 'PAYLOAD-OXUM', value: '0.0' }] }],
  ])('rejects elements that it cannot write: %j', async (options) => {
    const sink = await createBagZip(directory.at('options.zip'));
    await expect(writeBag(sink, inOrder([]), options)).rejects.toMatchObject({ code: 'USAGE' });
  });

  test.each(['folder', 'zip'])('never overwrites a file, whenever it was created: %s', async (kind) => {
    const path = directory.at(`taken-${kind}`);
    const sink = () =>
      kind === 'zip' ? createBagZip(path, 'bag') : Promise.resolve().then(() => createBagFolder(path));
    const early = await sink();
    await writeBag(await sink(), inOrder(['first']), OPTIONS);
    const before = kind === 'zip' ? sha256(path) : filesIn(path);
    await expect(writeBag(early, inOrder(['second']), OPTIONS)).rejects.toMatchObject({ code: 'BAG_EXISTS' });
    await expect(sink()).rejects.toMatchObject({ code: 'BAG_EXISTS' });
    expect(kind === 'zip' ? sha256(path) : filesIn(path)).toEqual(before);
    expect(readdirSync(directory.at('.')).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test('leaves no file if the content fails, and passes the error on', async () => {
    const failure = new Error('the content broke');
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(Buffer.from('a'));
      throw failure;
    };
    const payload = async function* (): AsyncGenerator<PayloadFile> {
      yield await Promise.resolve({ path: 'a', content: failing() });
    };
    for (const sink of [createBagFolder(directory.at('failing')), await createBagZip(directory.at('failing.zip'))]) {
      await expect(writeBag(sink, payload(), OPTIONS)).rejects.toBe(failure);
    }
    expect(readdirSync(directory.at('.')).filter((name) => /failing|partial/.test(name))).toEqual([]);
  });

  test('reports a missing destination directory', async () => {
    expect(() => createBagFolder(directory.at('none/bag'))).toThrow(
      expect.objectContaining({ code: 'BAG_UNWRITABLE' }),
    );
    await expect(createBagZip(directory.at('none/bag.zip'))).rejects.toMatchObject({ code: 'BAG_UNWRITABLE' });
    await expect(createBagZip(directory.at('x.zip'), '../x')).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('memory', () => {
  const PIECE = Buffer.alloc(65_536, 1);
  const PIECES = sized(240, 2_400);
  const FILES_MANY = sized(300, 3_000);
  const large = async function* (): AsyncGenerator<PayloadFile> {
    const zeros = async function* (): AsyncGenerator<Uint8Array> {
      for (let count = 0; count < PIECES; count += 1) yield await Promise.resolve(PIECE);
    };
    yield await Promise.resolve({ path: 'large', content: zeros() });
    for (let index = 0; index < FILES_MANY; index += 1)
      yield { path: `many/${String(index).padStart(6, '0')}`, content: PIECE.subarray(0, 10) };
  };

  test(`does not grow with the size of files: ${PIECES} times 64 KiB in one file`, async () => {
    let peak = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().arrayBuffers + process.memoryUsage().external);
    }, 5);
    const from = process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    await writeBag(await createBagZip(directory.at('large.zip')), large(), OPTIONS);
    const report = await verifyZip(directory.at('large.zip'));
    clearInterval(watch);
    expect(report).toMatchObject({
      valid: true,
      payload: { files: FILES_MANY + 1, bytes: PIECES * 65_536 + 10 * FILES_MANY },
    });
    expect(peak - from).toBeLessThan(100_000_000);
  });
});
