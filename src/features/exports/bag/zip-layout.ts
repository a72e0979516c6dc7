// Checks that a .zip file consists of exactly the entries in its directory. Readers may find entries by the directory
// at the end, or by the headers before the data. Both ways must give the same entries.
//
//   Z1. The entries are contiguous, from the first byte of the file to the directory: every byte is in exactly one
//       entry. So nothing is hidden before, between or after them.
//   Z2. The local header agrees with the directory: name, flags, method, time, CRC-32 and sizes. If a data descriptor
//       follows the data, it agrees too.
//   Z3. After the directory come its end records, which state its place and the number of entries, and a comment that
//       does not contain the start of a record; nothing else.

import { fstatSync, readSync } from 'node:fs';

const LOCAL = 0x04034b50;
const DESCRIPTOR = 0x08074b50;
const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const LOCAL_BYTES = 30;
const END_BYTES = 22;
const END_64_BYTES = 56;
const LOCATOR_64_BYTES = 20;
const MAX_32 = 0xffff_ffff;
const MAX_16 = 0xffff;
/** Flag: sizes and CRC-32 follow the data. */
const SIZES_FOLLOW = 0x8;
const ZIP64_FIELD = 0x0001;
const UNICODE_PATH_FIELD = 0x7075;

/** An entry of the directory. */
export interface ListedEntry {
  readonly offset: number;
  readonly compressed: number;
  readonly bytes: number;
  readonly crc: number;
  readonly method: number;
  readonly flags: number;
  readonly time: number;
  readonly date: number;
  readonly name: Buffer;
}

/** The place of the directory. */
export interface DirectoryPlace {
  readonly start: number;
  readonly end: number;
  readonly entries: number;
}

/** The layout of the archive is invalid. */
export class LayoutError extends Error {}

/**
 * Compares the archive with its directory. Reads the headers but none of the data.
 * @returns the offset of the data of each entry, in the order of `listed`
 * @throws LayoutError; errors of the operating system
 */
export function checkLayout(file: FileWindow, listed: readonly ListedEntry[], place: DirectoryPlace): Float64Array {
  const starts = new Float64Array(listed.length);
  const order = Array.from(listed.keys()).sort((one, other) => offsetOf(listed[one]) - offsetOf(listed[other]));
  let at = 0;
  for (const [turn, index] of order.entries()) {
    const entry = listed[index];
    if (entry === undefined) continue;
    if (entry.offset < at) throw new LayoutError('its entries overlap');
    if (entry.offset > at) throw new LayoutError('it holds bytes that are in no entry of its directory');
    const start = dataStart(file, entry);
    starts[index] = start;
    const next = order[turn + 1];
    const end = next === undefined ? place.start : offsetOf(listed[next]);
    at = start + entry.compressed;
    if ((entry.flags & SIZES_FOLLOW) !== 0) at += descriptorBytes(file, entry, { at, bytes: end - at });
  }
  if (at !== place.start)
    throw new LayoutError('its entries and its directory overlap, or bytes between them are in no entry');
  checkEnd(file, place);
  return starts;
}

const offsetOf = (entry: ListedEntry | undefined): number => entry?.offset ?? 0;

/** Checks Z2. @returns the offset of the data */
function dataStart(file: FileWindow, entry: ListedEntry): number {
  const header = file.at(entry.offset, LOCAL_BYTES);
  const [nameBytes, extraBytes] = [header.readUInt16LE(26), header.readUInt16LE(28)];
  const [crc, compressed, bytes] = [header.readUInt32LE(14), header.readUInt32LE(18), header.readUInt32LE(22)];
  const agrees =
    header.readUInt32LE(0) === LOCAL &&
    header.readUInt16LE(6) === entry.flags &&
    header.readUInt16LE(8) === entry.method &&
    header.readUInt16LE(10) === entry.time &&
    header.readUInt16LE(12) === entry.date;
  const start = entry.offset + LOCAL_BYTES + nameBytes + extraBytes;
  // Computed before the next read, which moves the window.
  const text = file.at(entry.offset + LOCAL_BYTES, nameBytes + extraBytes);
  const sizes = sizesIn(text.subarray(nameBytes), { compressed, bytes });
  const follow = (entry.flags & SIZES_FOLLOW) !== 0 && crc === 0 && sizes.compressed === 0 && sizes.bytes === 0;
  const same = crc === entry.crc && sizes.compressed === entry.compressed && sizes.bytes === entry.bytes;
  if (!agrees || !(same || follow) || !text.subarray(0, nameBytes).equals(entry.name)) throw contradictionError(entry);
  if (hasOtherName(text.subarray(nameBytes), entry.name)) throw contradictionError(entry);
  return start;
}

interface Sizes {
  readonly compressed: number;
  readonly bytes: number;
}

/** The sizes of a header; 64-bit sizes are in an extra field. */
function sizesIn(extra: Buffer, { compressed, bytes }: Sizes): Sizes {
  if (compressed !== MAX_32 && bytes !== MAX_32) return { compressed, bytes };
  for (const { id, data } of fieldsIn(extra)) {
    if (id !== ZIP64_FIELD || data.length < 16) continue;
    return { bytes: Number(data.readBigUInt64LE(0)), compressed: Number(data.readBigUInt64LE(8)) };
  }
  return { compressed, bytes };
}

/** Whether an extra field contains a different name. */
function hasOtherName(extra: Buffer, name: Buffer): boolean {
  for (const { id, data } of fieldsIn(extra)) {
    if (id === UNICODE_PATH_FIELD && !data.subarray(5).equals(name)) return true;
  }
  return false;
}

function* fieldsIn(extra: Buffer): Generator<{ readonly id: number; readonly data: Buffer }> {
  for (let at = 0; at + 4 <= extra.length;) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (end > extra.length) return;
    yield { id: extra.readUInt16LE(at), data: extra.subarray(at + 4, end) };
    at = end;
  }
}

/** Checks a data descriptor; the gap shows which of its four forms it has. @returns its size */
function descriptorBytes(file: FileWindow, entry: ListedEntry, gap: { at: number; bytes: number }): number {
  const wide = gap.bytes === 20 || gap.bytes === 24;
  const signed = gap.bytes === 16 || gap.bytes === 24;
  if (gap.bytes !== 12 && !wide && !signed) throw contradictionError(entry);
  const found = file.at(gap.at, gap.bytes);
  if (signed && found.readUInt32LE(0) !== DESCRIPTOR) throw contradictionError(entry);
  const at = signed ? 4 : 0;
  const size = (from: number): number => (wide ? Number(found.readBigUInt64LE(from)) : found.readUInt32LE(from));
  const same =
    found.readUInt32LE(at) === entry.crc &&
    size(at + 4) === entry.compressed &&
    size(at + (wide ? 12 : 8)) === entry.bytes;
  if (!same) throw contradictionError(entry);
  return gap.bytes;
}

/** Checks Z3. */
function checkEnd(file: FileWindow, { start, end, entries }: DirectoryPlace): void {
  const rest = file.size - end;
  if (rest < END_BYTES || rest > END_64_BYTES + LOCATOR_64_BYTES + END_BYTES + MAX_16) throw badEndError();
  const tail = file.at(end, rest);
  const wide = tail.readUInt32LE(0) === END_64;
  const at = wide ? END_64_BYTES + LOCATOR_64_BYTES : 0;
  if (rest < at + END_BYTES || tail.readUInt32LE(at) !== END) throw badEndError();
  const comment = tail.subarray(at + END_BYTES);
  if (tail.readUInt16LE(at + 20) !== comment.length || comment.includes('PK')) throw badEndError();
  // A number that does not fit into the short record is all ones there, and is stored in the long record.
  const isExpected = (found: number, max: number, expected: number): boolean =>
    found === expected || (wide && found === max);
  const fits =
    tail.readUInt32LE(at + 4) === 0 &&
    isExpected(tail.readUInt16LE(at + 8), MAX_16, entries) &&
    isExpected(tail.readUInt16LE(at + 10), MAX_16, entries) &&
    isExpected(tail.readUInt32LE(at + 12), MAX_32, end - start) &&
    isExpected(tail.readUInt32LE(at + 16), MAX_32, start);
  if (!fits || (wide && !isWideEnd(tail, { start, end, entries }))) throw badEndError();
}

function isWideEnd(tail: Buffer, { start, end, entries }: DirectoryPlace): boolean {
  const number = (at: number): number => Number(tail.readBigUInt64LE(at));
  return (
    number(4) === END_64_BYTES - 12 &&
    number(16) === 0 &&
    number(24) === entries &&
    number(32) === entries &&
    number(40) === end - start &&
    number(48) === start &&
    tail.readUInt32LE(END_64_BYTES) === LOCATOR_64 &&
    tail.readUInt32LE(END_64_BYTES + 4) === 0 &&
    number(END_64_BYTES + 8) === end &&
    tail.readUInt32LE(END_64_BYTES + 16) === 1
  );
}

const contradictionError = ({ name }: ListedEntry): LayoutError =>
  new LayoutError(`it contradicts itself about ${name.toString('utf8')}`);

const badEndError = (): LayoutError =>
  new LayoutError('its end records do not describe its directory, or bytes follow them');

const WINDOW_BYTES = 262_144;

/** An open file, read through a buffer: a read close to the one before costs no system call. */
export class FileWindow {
  readonly size: number;
  readonly #descriptor: number;
  #window: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.size = fstatSync(descriptor).size;
  }

  /** The bytes from `position` on, valid until the next call. @throws LayoutError beyond the end */
  at(position: number, bytes: number): Buffer {
    const from = position - this.#start;
    if (from >= 0 && from + bytes <= this.#window.length) return this.#window.subarray(from, from + bytes);
    if (position < 0 || position + bytes > this.size) throw new LayoutError('it is cut short');
    const window = Buffer.allocUnsafe(Math.min(Math.max(bytes, WINDOW_BYTES), this.size - position));
    for (let read = 0; read < window.length;) {
      const more = readSync(this.#descriptor, window, read, window.length - read, position + read);
      if (more === 0) throw new LayoutError('it became shorter while it was read');
      read += more;
    }
    [this.#window, this.#start] = [window, position];
    return window.subarray(0, bytes);
  }
}
