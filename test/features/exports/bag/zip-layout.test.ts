// Archives that two readers would read differently: by the directory at the end, or by the headers before the data.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { createBagZip } from '../../../../src/features/exports/bag/create-bag.js';
import { openBagZip } from '../../../../src/features/exports/bag/bag-zip.js';
import { localHeader } from '../../../../src/features/exports/bag/zip-format.js';
import { writeBag } from '../../../../src/features/exports/bagit/write-bag.js';
import { forgeZip, OPTIONS, payloadOf, place, verifyZip } from '../bagit/material.js';

const { at, remove } = place();
afterAll(remove);
let good: Buffer;
beforeAll(async () => {
  await writeBag(
    await createBagZip(at('good.zip'), 'bag'),
    payloadOf({ 'a.txt': 'alpha', 'b/c.txt': 'gamma' }),
    OPTIONS,
  );
  good = readFileSync(at('good.zip'));
});

const LOCAL = Buffer.from('PK\u0003\u0004');
const CENTRAL = Buffer.from('PK\u0001\u0002');
const END = Buffer.from('PK\u0005\u0006');
const startOf = (bytes: Buffer): number => bytes.readUInt32LE(bytes.lastIndexOf(END) + 16);

/** The archive with `bytes` inserted at `index`, and all offsets after it adjusted. */
function inserted(archive: Buffer, index: number, bytes: Buffer): Buffer {
  const result = Buffer.concat([archive.subarray(0, index), bytes, archive.subarray(index)]);
  const end = result.lastIndexOf(END);
  const start = startOf(archive) + (index <= startOf(archive) ? bytes.length : 0);
  result.writeUInt32LE(start, end + 16);
  for (let entry = start; result.subarray(entry, entry + 4).equals(CENTRAL);) {
    const offset = result.readUInt32LE(entry + 42);
    if (offset >= index) result.writeUInt32LE(offset + bytes.length, entry + 42);
    const [name, extra, comment] = [28, 30, 32].map((field) => result.readUInt16LE(entry + field)) as [
      number,
      number,
      number,
    ];
    entry += 46 + name + extra + comment;
  }
  return result;
}

const hidden = (): Buffer => {
  const content = Buffer.from('hidden');
  return Buffer.concat([localHeader({ name: 'bag/data/a.txt', crc: crc32(content), bytes: content.length }), content]);
};

/** A changed byte of the n-th header of this kind. */
function flipped(archive: Buffer, signature: Buffer, n: number, field: number): Buffer {
  const result = Buffer.from(archive);
  let found = -1;
  for (let turn = 0; turn <= n; turn += 1) found = result.indexOf(signature, found + 1);
  result[found + field]! ^= 1;
  return result;
}

const hostile = { code: 'BAG_HOSTILE' };
async function verifying(bytes: Buffer) {
  writeFileSync(at('changed.zip'), bytes);
  return verifyZip(at('changed.zip'));
}

describe('an archive', () => {
  test('written by this platform matches its directory', async () => {
    expect(await verifying(good)).toMatchObject({ valid: true, findings: [] });
  });

  test('with an entry that the directory does not list is refused, wherever that is', async () => {
    const second = good.indexOf(LOCAL, 4);
    for (const index of [0, second, startOf(good)]) {
      await expect(verifying(inserted(good, index, hidden()))).rejects.toMatchObject(hostile);
    }
    await expect(verifying(inserted(good, startOf(good), Buffer.from('x')))).rejects.toMatchObject(hostile);
    // Between the directory and its end record, where it shifts nothing.
    await expect(verifying(inserted(good, good.lastIndexOf(END), hidden()))).rejects.toMatchObject(hostile);
  });

  test('appended to another archive is refused, with adjusted and with original offsets', async () => {
    await expect(verifying(Buffer.concat([good, good]))).rejects.toMatchObject(hostile);
    await expect(verifying(inserted(good, 0, good))).rejects.toMatchObject(hostile);
    await expect(verifying(Buffer.concat([good, Buffer.alloc(10)]))).rejects.toMatchObject({ code: 'BAG_UNREADABLE' });
  });

  test.each([4, 6, 8, 10, 12, 14, 18, 22, 26, 28, 30])(
    'whose local header differs at byte %i is refused',
    async (field) => {
      for (const n of [0, 3]) {
        const outcome = await verifying(flipped(good, LOCAL, n, field)).then(
          ({ valid }) => (valid ? 'valid' : 'refused'),
          (error: unknown) => (error as { code: string }).code,
        );
        // The version that a reader needs does not affect the content.
        expect([field, outcome]).toEqual([field, field === 4 ? 'valid' : 'BAG_HOSTILE']);
      }
    },
  );

  test.each([10, 16, 20, 24, 28, 42])('whose directory differs at byte %i of an entry is refused', async (field) => {
    await expect(verifying(flipped(good, CENTRAL, 2, field))).rejects.toThrow();
  });

  test.each([8, 10, 12, 16])('whose end record differs at byte %i is refused', async (field) => {
    await expect(verifying(flipped(good, END, 0, field))).rejects.toThrow();
  });

  test('whose entries together are too large is refused before any is inflated', async () => {
    const entries = Array.from({ length: 150 }, (_, n) => ({
      name: `bag/data/${n}`,
      content: Buffer.alloc(1_048_576, 0),
      deflate: true,
    }));
    writeFileSync(at('grows.zip'), forgeZip(entries));
    const tree = await openBagZip(at('grows.zip'));
    await expect(tree.entries()[Symbol.asyncIterator]().next()).rejects.toMatchObject(hostile);
    await tree.close();
  });
});
