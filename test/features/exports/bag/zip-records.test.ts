// The records of an archive, with one wrong value at a time: the rules of zip-layout.ts and bag-zip.ts by
// themselves, without the library that finds the directory, which would refuse some of these before.

import { afterAll, describe, expect, test } from '@jest/globals';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { crc32, deflateRawSync } from 'node:zlib';
import {
  openBagZip,
  readZipContent,
  DEFLATED,
  STORED,
  type ZipItem,
} from '../../../../src/features/exports/bag/bag-zip.js';
import { endRecords, localHeader } from '../../../../src/features/exports/bag/zip-format.js';
import {
  checkLayout,
  FileWindow,
  LayoutError,
  type ListedEntry,
} from '../../../../src/features/exports/bag/zip-layout.js';
import { forgeZip, place } from '../bagit/material.js';

const { at, remove } = place();
afterAll(remove);

function opened<T>(bytes: Buffer, use: (file: FileWindow) => T): T {
  writeFileSync(at('archive'), bytes);
  const fd = openSync(at('archive'), 'r');
  try {
    return use(new FileWindow(fd));
  } finally {
    closeSync(fd);
  }
}

const DATA = Buffer.from('content');
const CRC = crc32(DATA);
const OTHER_CRC = crc32('other');
const SIZES_FOLLOW = 0x808;
const NAME = 'a.txt';
const LISTED: ListedEntry = {
  ...{ offset: 0, compressed: DATA.length, bytes: DATA.length, crc: CRC },
  ...{ method: STORED, flags: 0x800, time: 0, date: 0x21, name: Buffer.from(NAME) },
};
const DIRECTORY = Buffer.alloc(10);

/** A changed byte of some records. */
function flipped(records: Buffer, field: number): Buffer {
  records[field]! ^= 1;
  return records;
}

interface Archive {
  readonly flags?: number;
  /** Changes the local header. */
  readonly local?: (header: Buffer) => void;
  readonly extra?: Buffer;
  /** Replaces what follows the data. */
  readonly descriptor?: Buffer;
  readonly entries?: number;
  /** Changes the records after the directory. */
  readonly end?: (records: Buffer) => Buffer;
}

/** An archive of one entry. @returns its error; null for a valid one */
function wrong(archive: Archive): string | null {
  const { flags = 0x800, extra = Buffer.alloc(0), descriptor = Buffer.alloc(0), entries = 1 } = archive;
  const header = localHeader({ name: NAME, crc: CRC, bytes: DATA.length });
  header.writeUInt16LE(flags, 6);
  header.writeUInt16LE(extra.length, 28);
  archive.local?.(header);
  const before = Buffer.concat([header, extra, DATA, descriptor]);
  const start = before.length;
  const records = endRecords({ entries, offset: start, bytes: DIRECTORY.length });
  const bytes = Buffer.concat([before, DIRECTORY, archive.end?.(records) ?? records]);
  try {
    opened(bytes, (file) =>
      checkLayout(file, [{ ...LISTED, flags }], { start, end: start + DIRECTORY.length, entries }),
    );
    return null;
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    return error.message;
  }
}

const CONTRADICTS = 'it contradicts itself about a.txt';
const BAD_END = 'its end records do not describe its directory, or bytes follow them';

describe('Z2: the local header', () => {
  test('agrees with the directory', () => {
    expect(wrong({})).toBeNull();
  });

  test.each(Array.from({ length: 4 }, (_, byte) => byte))('is known by byte %i of its signature', (byte) => {
    expect(wrong({ local: (header) => void flipped(header, byte) })).toBe(CONTRADICTS);
  });

  const named = (name: string): Buffer => {
    const field = Buffer.alloc(9);
    field.writeUInt16LE(0x7075, 0);
    field.writeUInt16LE(5 + name.length, 2);
    return Buffer.concat([field, Buffer.from(name)]);
  };

  test('has no other name in an extra field', () => {
    expect(wrong({ extra: named(NAME) })).toBeNull();
    expect(wrong({ extra: named('b.txt') })).toBe(CONTRADICTS);
    expect(wrong({ extra: Buffer.concat([named(NAME), named('b.txt')]) })).toBe(CONTRADICTS);
  });
});

interface Descriptor {
  readonly signature?: number | null;
  readonly wide?: boolean;
  readonly crc?: number;
  readonly compressed?: number;
  readonly bytes?: number;
}

function descriptor({ wide = false, signature = 0x08074b50, ...said }: Descriptor = {}): Buffer {
  const { crc = CRC, compressed = DATA.length, bytes = DATA.length } = said;
  const field = (value: number, size = 4): Buffer => {
    const written = Buffer.alloc(size);
    written.writeUInt32LE(value);
    return written;
  };
  const head = signature === null ? [] : [field(signature)];
  return Buffer.concat([...head, field(crc), ...[compressed, bytes].map((size) => field(size, wide ? 8 : 4))]);
}

const unsized = (header: Buffer): void => void header.fill(0, 14, 26);
const followed = (by: Buffer, local = unsized): string | null => wrong({ flags: SIZES_FOLLOW, local, descriptor: by });

describe('Z2: sizes that follow the data', () => {
  const forms: readonly Descriptor[] = [{ signature: null }, {}, { signature: null, wide: true }, { wide: true }];

  test.each(forms)('are read in each form: %j', (form) => {
    expect(followed(descriptor(form))).toBeNull();
    for (const lie of [{ crc: OTHER_CRC }, { compressed: DATA.length + 1 }, { bytes: DATA.length + 1 }]) {
      expect(followed(descriptor({ ...form, ...lie }))).toBe(CONTRADICTS);
    }
  });

  test.each([false, true])('have their own signature or omit it; wide: %s', (wide) => {
    expect(followed(descriptor({ wide, signature: 0x04034b50 }))).toBe(CONTRADICTS);
  });

  test('have the length of one of the forms, so that no byte is hidden after them', () => {
    expect(followed(Buffer.concat([descriptor({ signature: null }), Buffer.from('x')]))).toBe(CONTRADICTS);
    expect(followed(Buffer.alloc(0))).toBe(CONTRADICTS);
  });

  test.each([14, 18, 22])('are in the local header as well, or zero there: byte %i', (field) => {
    expect(followed(descriptor(), () => undefined)).toBeNull();
    const lie = (header: Buffer): void => {
      unsized(header);
      header.writeUInt32LE(5, field);
    };
    expect(followed(descriptor(), lie)).toBe(CONTRADICTS);
  });
});

describe('Z3: the records after the directory', () => {
  test.each([4, 6])('refer to no other disk: byte %i', (field) => {
    expect(wrong({ end: (end) => flipped(end, field) })).toBe(BAD_END);
  });

  test.each([8, 10])('refer to the long record only if it exists: byte %i', (field) => {
    expect(wrong({ end: (end) => end.fill(0xff, field, field + 2) })).toBe(BAD_END);
  });

  test('have a comment of the stated length, in which no record can begin', () => {
    const commented = (comment: string, length = comment.length) =>
      wrong({
        end: (end) => {
          end.writeUInt16LE(length, 20);
          return Buffer.concat([end, Buffer.from(comment)]);
        },
      });
    expect(commented('of a bag')).toBeNull();
    expect(commented('of a bag', 0)).toBe(BAD_END);
    expect(commented('of a bag', 9)).toBe(BAD_END);
    expect(commented('PK\u0001\u0002')).toBe(BAD_END);
  });

  test('are the long ones if a number does not fit into the short one', () => {
    expect(wrong({ entries: 70_000 })).toBeNull();
  });

  // Size, disks, entries, size and offset of the directory; then the locator: signature, disk, offset, disks.
  test.each([4, 16, 20, 24, 32, 40, 48, 56, 60, 64, 72])('agree in the long records: byte %i', (field) => {
    const end = (records: Buffer): Buffer => flipped(records, field);
    expect(wrong({ entries: 70_000, end })).toBe(BAD_END);
  });

  test.each([84, 86, 88, 92])('agree in the short record after a long one: byte %i', (field) => {
    const end = (records: Buffer): Buffer => flipped(records, field);
    expect(wrong({ entries: 70_000, end })).toBe(BAD_END);
  });
});

/** All content that is yielded before it ends or fails. */
async function given(bytes: Buffer, item: Partial<ZipItem>): Promise<{ content: Buffer; error: unknown }> {
  writeFileSync(at('content'), bytes);
  const fd = openSync(at('content'), 'r');
  const parts: Uint8Array[] = [];
  try {
    const whole = { start: 0, compressed: bytes.length, bytes: bytes.length, crc: crc32(bytes), method: STORED };
    for await (const piece of readZipContent(new FileWindow(fd), { ...whole, ...item })) parts.push(piece);
    return { content: Buffer.concat(parts), error: null };
  } catch (error) {
    return { content: Buffer.concat(parts), error };
  } finally {
    closeSync(fd);
  }
}

describe('the content of an entry', () => {
  const CORRUPT = expect.objectContaining({ message: 'its data is not what its header says' });

  test.each([
    ['small', 1_000],
    ['large', 300_000],
  ])('that is %s matches its CRC-32', async (_size, length) => {
    for (const method of [STORED, DEFLATED]) {
      const content = Buffer.alloc(length, 'x');
      const data = method === STORED ? content : deflateRawSync(content);
      const item = { method, bytes: length, crc: crc32(content) };
      const whole = await given(data, item);
      expect([whole.error, whole.content.equals(content)]).toEqual([null, true]);
      expect((await given(data, { ...item, crc: OTHER_CRC })).error).toEqual(CORRUPT);
      expect((await given(data, { ...item, bytes: length + 1 })).error).toEqual(CORRUPT);
    }
  });

  test.each([1_000, 300_000])('of %i bytes ends with its deflated data', async (length) => {
    const content = Buffer.alloc(length, 'x');
    const data = Buffer.concat([deflateRawSync(content), Buffer.from('slack')]);
    const item = { method: DEFLATED, bytes: length, crc: crc32(content) };
    expect((await given(data, item)).error).toEqual(CORRUPT);
  });

  test('that exceeds its stated size is not inflated further', async () => {
    const data = deflateRawSync(Buffer.alloc(3_000_000));
    const small = await given(data, { method: DEFLATED, bytes: 1_000 });
    expect(small).toMatchObject({ content: Buffer.alloc(0), error: { code: 'ERR_BUFFER_TOO_LARGE' } });
    const large = await given(data, { method: DEFLATED, bytes: 270_000 });
    expect(large.error).toEqual(CORRUPT);
    expect(large.content.length).toBeLessThanOrEqual(270_000);
  });
});

describe('an archive', () => {
  const listing = async (name: string, limits = {}): Promise<readonly object[]> => {
    const tree = await openBagZip(at(name), limits);
    const entries: object[] = [];
    try {
      for await (const entry of tree.entries()) entries.push(entry);
      return entries;
    } finally {
      await tree.close();
    }
  };

  test('whose directory is larger than the limit is refused', async () => {
    const bytes = forgeZip([{ name: 'bag/a', content: 'a' }]);
    writeFileSync(at('directory.zip'), bytes);
    const directory = bytes.length - bytes.readUInt32LE(bytes.length - 6);
    expect(await listing('directory.zip', { directory_bytes_max: directory })).toHaveLength(1);
    await expect(listing('directory.zip', { directory_bytes_max: directory - 1 })).rejects.toMatchObject({
      code: 'BAG_HOSTILE',
    });
  });

  test('with content in a directory is contradictory', async () => {
    writeFileSync(at('content.zip'), forgeZip([{ name: 'bag/a/', content: 'a', mode: 0o040700 }, { name: 'bag/b' }]));
    expect(await listing('content.zip')).toContainEqual({ kind: 'refused', path: 'a', reason: 'contradiction' });
  });
});
