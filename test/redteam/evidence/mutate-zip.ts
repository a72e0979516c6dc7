// Mutations of .zip files: of their records, and of the bytes between these.

import { crc32, deflateRawSync } from 'node:zlib';
import {
  centralHeader,
  endRecords,
  localHeader,
  type ZipRecord,
} from '../../../src/features/exports/bag/zip-format.js';
import type { Draw } from './draw.js';
import { byDirectory } from './independent-bag.js';

const LOCAL = Buffer.from('PK\u0003\u0004');
const CENTRAL = Buffer.from('PK\u0001\u0002');
const END = Buffer.from('PK\u0005\u0006');

type Change = (zip: Buffer, draw: Draw) => Buffer;

const endOf = (zip: Buffer): number => zip.lastIndexOf(END);
const startOf = (zip: Buffer): number => zip.readUInt32LE(endOf(zip) + 16);

function placesOf(zip: Buffer, signature: Buffer): number[] {
  const found: number[] = [];
  for (let at = zip.indexOf(signature); at !== -1; at = zip.indexOf(signature, at + 1)) found.push(at);
  return found;
}

/** Inserted bytes, with all offsets corrected. */
function inserted(zip: Buffer, index: number, bytes: Buffer, moves: (offset: number) => boolean): Buffer {
  const result = Buffer.concat([zip.subarray(0, index), bytes, zip.subarray(index)]);
  const start = startOf(zip) + (index <= startOf(zip) ? bytes.length : 0);
  result.writeUInt32LE(start, endOf(result) + 16);
  for (let at = start; result.subarray(at, at + 4).equals(CENTRAL);) {
    const offset = result.readUInt32LE(at + 42);
    if (moves(offset)) result.writeUInt32LE(offset + bytes.length, at + 42);
    at += 46 + [28, 30, 32].reduce((sum, field) => sum + result.readUInt16LE(at + field), 0);
  }
  return result;
}

const entryOf = (name: string, content: Buffer): Buffer =>
  Buffer.concat([localHeader({ name, crc: crc32(content), bytes: content.length }), content]);

const names = (zip: Buffer): string[] => [...byDirectory(zip).keys()];

/** A changed field of a header. */
const field =
  (signature: Buffer, fields: readonly (readonly [number, 2 | 4])[]): Change =>
  (zip, draw) => {
    const result = Buffer.from(zip);
    const at = draw.of(placesOf(zip, signature));
    const [offset, width] = draw.of(fields);
    const former = width === 2 ? zip.readUInt16LE(at + offset) : zip.readUInt32LE(at + offset);
    const other = draw.of([0, 1, former + 1, former ^ (1 << draw.below(8 * width)), 0xffff, draw.below(2 ** 31)]);
    if (width === 2) result.writeUInt16LE((other >>> 0) % 65_536, at + offset);
    else result.writeUInt32LE(other >>> 0, at + offset);
    return result;
  };

/** The archive of these entries, as the platform would write it. */
function archiveOf(entries: readonly (readonly [string, Buffer])[]): Buffer {
  const records: ZipRecord[] = [];
  const parts: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of entries) {
    const record = { name, crc: crc32(content), bytes: content.length, offset };
    const header = localHeader(record);
    parts.push(header, content);
    records.push(record);
    offset += header.length + content.length;
  }
  const list = Buffer.concat(records.map(centralHeader));
  return Buffer.concat([...parts, list, endRecords({ entries: records.length, offset, bytes: list.length })]);
}

const CHANGES: Readonly<Record<string, Change>> = {
  localField: field(LOCAL, [
    [4, 2],
    [6, 2],
    [8, 2],
    [10, 2],
    [12, 2],
    [14, 4],
    [18, 4],
    [22, 4],
    [26, 2],
    [28, 2],
  ]),
  centralField: field(CENTRAL, [
    [6, 2],
    [8, 2],
    [10, 2],
    [12, 2],
    [14, 2],
    [16, 4],
    [20, 4],
    [24, 4],
    [28, 2],
    [30, 2],
    [32, 2],
    [38, 4],
    [42, 4],
  ]),
  endField: field(END, [
    [4, 2],
    [6, 2],
    [8, 2],
    [10, 2],
    [12, 4],
    [16, 4],
    [20, 2],
  ]),
  localName: (zip, draw) => {
    const result = Buffer.from(zip);
    const at = draw.of(placesOf(zip, LOCAL));
    result[at + 30 + draw.below(Math.max(1, zip.readUInt16LE(at + 26)))] = draw.below(256);
    return result;
  },
  hiddenEntry: (zip, draw) => {
    const name = draw.chance(0.7) ? draw.of(names(zip)) : 'bag/data/hidden';
    const bytes = draw.chance(0.8) ? entryOf(name, Buffer.from('hidden')) : Buffer.alloc(1 + draw.below(50), 1);
    const places = [...placesOf(zip, LOCAL), startOf(zip), endOf(zip)];
    const index = draw.of(places);
    return inserted(zip, index, bytes, (offset) => offset >= index);
  },
  pointedElsewhere: (zip, draw) => {
    // The directory names an entry before the one that other readers find first.
    const bytes = entryOf(draw.of(names(zip)), Buffer.from('shown to one reader'));
    return inserted(zip, 0, bytes, () => draw.chance(0.95));
  },
  joined: (zip, draw) => {
    const other = draw.chance(0.5) ? zip : archiveOf([['bag/data/x', Buffer.from('x')]]);
    return draw.chance(0.5) ? Buffer.concat([zip, other]) : inserted(zip, 0, other, () => true);
  },
  overlap: (zip, draw) => {
    const result = Buffer.from(zip);
    const central = placesOf(zip, CENTRAL);
    const [one, other] = [draw.of(central), draw.of(central)];
    result.writeUInt32LE(zip.readUInt32LE(other + 42), one + 42);
    return result;
  },
  trailing: (zip, draw) => Buffer.concat([zip, Buffer.alloc(1 + draw.below(100), draw.below(256))]),
  comment: (zip, draw) => {
    const comment = Buffer.concat([
      Buffer.alloc(draw.below(30), 1),
      draw.chance(0.5) ? END : Buffer.alloc(0),
      Buffer.alloc(30),
    ]);
    const result = Buffer.concat([zip, comment]);
    result.writeUInt16LE(comment.length, endOf(zip) + 20);
    return result;
  },
  cut: (zip, draw) =>
    zip.subarray(draw.chance(0.8) ? 0 : draw.below(100), zip.length - draw.below(Math.min(zip.length, 2_000))),
  byte: (zip, draw) => {
    const result = Buffer.from(zip);
    result[draw.below(zip.length)] = draw.below(256);
    return result;
  },
  content: (zip, draw) => {
    // Another content under the same name, in an otherwise valid archive.
    const entries = [...byDirectory(zip)].filter(([name]) => !name.endsWith('/'));
    const at = draw.below(entries.length);
    return archiveOf(
      entries.map(([name, bytes], n) => [
        name,
        n === at ? Buffer.concat([bytes, Buffer.from(' ')]) : Buffer.from(bytes),
      ]),
    );
  },
  twice: (zip, draw) => {
    const entries = [...byDirectory(zip)];
    return archiveOf([...entries, [draw.of(entries)[0], Buffer.from('twice')]]);
  },
  hugeCount: (zip, draw) => {
    const count = draw.chance(0.02) ? 240_000 : draw.chance(0.2) ? 5_000 : 300;
    const entries = [...byDirectory(zip)];
    const folder = 'd/'.repeat(draw.chance(0.5) ? 0 : draw.below(200));
    const more = Array.from({ length: count }, (_, n) => [`bag/data/${folder}${n}`, Buffer.alloc(0)] as const);
    return archiveOf([...entries, ...more]);
  },
  deepName: (zip, draw) =>
    archiveOf([...byDirectory(zip), [`bag/data/${'x/'.repeat(draw.below(3_000))}y`, Buffer.from('y')]]),
  bomb: (zip, draw) => {
    const bytes = draw.chance(0.02) ? 200_000_000 : 2_000_000;
    const content = Buffer.alloc(bytes);
    const data = deflateRawSync(content, { level: 1 });
    const header = localHeader({ name: 'bag/data/bomb', crc: crc32(content), bytes });
    const central = centralHeader({ name: 'bag/data/bomb', crc: crc32(content), bytes, offset: 0 });
    header.writeUInt16LE(8, 8);
    header.writeUInt32LE(data.length, 18);
    central.writeUInt16LE(8, 10);
    central.writeUInt32LE(data.length, 20);
    const with_ = inserted(zip, 0, Buffer.concat([header, data]), () => true);
    const listed = inserted(with_, startOf(with_), Buffer.alloc(0), () => false);
    const start = startOf(listed);
    const result = Buffer.concat([listed.subarray(0, start), central, listed.subarray(start)]);
    result.writeUInt32LE(start, endOf(result) + 16);
    result.writeUInt32LE(zip.readUInt32LE(endOf(zip) + 12) + central.length, endOf(result) + 12);
    for (const at of [8, 10]) result.writeUInt16LE(zip.readUInt16LE(endOf(zip) + at) + 1, endOf(result) + at);
    return result;
  },
};

export function mutatedZip(zip: Buffer, draw: Draw): { readonly name: string; readonly zip: Buffer } {
  const name = draw.of(Object.keys(CHANGES));
  const changed = CHANGES[name]?.(zip, draw) ?? zip;
  if (!draw.chance(0.2)) return { name, zip: changed };
  const second = draw.of(['byte', 'localField', 'centralField', 'trailing']);
  try {
    return { name: `${name}+${second}`, zip: CHANGES[second]?.(changed, draw) ?? changed };
  } catch {
    return { name, zip: changed };
  }
}
