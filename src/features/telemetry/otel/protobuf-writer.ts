const BYTES_FIRST = 65_536;
/** A length below this takes one byte. */
const ONE_BYTE = 0x80;
const ASCII = 0x80;
const TWO_32 = 2 ** 32;
const TWO_16 = 2 ** 16;
const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1_000_000;
const NS_PER_SECOND = MS_PER_SECOND * NS_PER_MS;

/** What follows the number of a field. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/**
 * Writes the wire format of protobuf into a buffer that grows and is used again. Nothing is allocated for a value.
 */
export class ProtobufWriter {
  #bytes: Buffer;
  #end = 0;

  constructor(size = BYTES_FIRST) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  get length(): number {
    return this.#end;
  }

  clear(): void {
    this.#end = 0;
  }

  /** All bytes since the last `clear`. They change with the next write. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#end);
  }

  tag(field: number, wire: number): void {
    this.varint(field * 8 + wire);
  }

  /** An unsigned integer below 2^32. */
  varint(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest >= ONE_BYTE) {
      this.#bytes[this.#end++] = (rest & 0x7f) | ONE_BYTE;
      rest >>>= 7;
    }
    this.#bytes[this.#end++] = rest;
  }

  /** An integer of 64 bits, signed. */
  int64(value: number): void {
    if (value >= 0 && value < TWO_32) {
      this.varint(value);
      return;
    }
    this.#reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest >= 0x80n) {
      this.#bytes[this.#end++] = Number(rest & 0x7fn) | ONE_BYTE;
      rest >>= 7n;
    }
    this.#bytes[this.#end++] = Number(rest);
  }

  fixed32(value: number): void {
    this.#reserve(4);
    const bytes = this.#bytes;
    bytes[this.#end++] = value & 0xff;
    bytes[this.#end++] = (value >>> 8) & 0xff;
    bytes[this.#end++] = (value >>> 16) & 0xff;
    bytes[this.#end++] = value >>> 24;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#end = this.#bytes.writeDoubleLE(value, this.#end);
  }

  /** A time in ms since the epoch, as nanoseconds of 64 bits: more than a number holds, so in two halves. */
  time(ms: number): void {
    const seconds = Math.trunc(ms / MS_PER_SECOND);
    const ns = Math.round((ms - seconds * MS_PER_SECOND) * NS_PER_MS);
    const upper = Math.floor(seconds / TWO_16) * NS_PER_SECOND;
    const lower = (seconds % TWO_16) * NS_PER_SECOND + ns + (upper % TWO_16) * TWO_16;
    this.fixed32(lower % TWO_32);
    this.fixed32((Math.floor(upper / TWO_16) + Math.floor(lower / TWO_32)) % TWO_32);
  }

  /** Hexadecimal digits, as bytes with their length. */
  hex(digits: string): void {
    const size = digits.length >>> 1;
    this.varint(size);
    this.#reserve(size);
    const bytes = this.#bytes;
    for (let at = 0; at < size * 2; at += 2) {
      bytes[this.#end++] = (nibble(digits.charCodeAt(at)) << 4) | nibble(digits.charCodeAt(at + 1));
    }
  }

  /** Text as UTF-8 with its length. */
  text(text: string): void {
    const { length } = text;
    if (length >= ONE_BYTE) {
      this.#utf8(text);
      return;
    }
    this.#reserve(length + 1);
    const bytes = this.#bytes;
    let end = this.#end;
    bytes[end++] = length;
    for (let at = 0; at < length; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= ASCII) {
        this.#utf8(text);
        return;
      }
      bytes[end++] = code;
    }
    this.#end = end;
  }

  copy(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /**
   * Begins a message in this one. @param width bytes of its length, where they are known: `end` moves it otherwise
   * @returns its beginning, for `end`
   */
  begin(width = 1): number {
    this.#reserve(width);
    const start = this.#end;
    this.#end += width;
    return start;
  }

  end(start: number, width = 1): void {
    const size = this.#end - start - width;
    const needed = widthOf(size);
    if (needed !== width) {
      this.#reserve(Math.max(0, needed - width));
      this.#bytes.copyWithin(start + needed, start + width, this.#end);
      this.#end += needed - width;
    }
    const bytes = this.#bytes;
    let at = start;
    let rest = size;
    for (; rest >= ONE_BYTE; rest >>>= 7) bytes[at++] = (rest & 0x7f) | ONE_BYTE;
    bytes[at] = rest;
  }

  #utf8(text: string): void {
    const size = Buffer.byteLength(text);
    this.varint(size);
    this.#reserve(size);
    this.#end += this.#bytes.write(text, this.#end, 'utf8');
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#end + size));
    larger.set(this.bytes);
    this.#bytes = larger;
  }
}

/** The bytes of a length. */
export function widthOf(length: number): number {
  let width = 1;
  for (let rest = length; rest >= ONE_BYTE; rest >>>= 7) width += 1;
  return width;
}

/** The value of a hexadecimal digit: letters begin at 0x61, and 9 of the lower bits follow `0x60`. */
const nibble = (code: number): number => (code & 0xf) + (code > 0x39 ? 9 : 0);
