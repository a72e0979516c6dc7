// Damage that a disk may cause to the last pages of a file: truncated, zeroed, filled with ones, one bit flipped.

import { below, seeded } from './seeded.js';

export interface Damage {
  readonly name: string;
  readonly apply: (bytes: Buffer) => Buffer;
}

const PAGE = 8_192;
/** A page in the log of the database, with its header; 32 bytes precede the first one. */
const FRAME = PAGE + 24;
const WAL_HEADER = 32;
const PAGES = 8;

/** A seeded sample of damage to the last pages of a database, or of its log, and each whole page once. */
export function damages(
  file: string,
  bytes: Buffer,
  { seed, samples, pages = PAGES }: { readonly seed: number; readonly samples: number; readonly pages?: number },
): readonly Damage[] {
  const random = seeded(seed);
  const [unit, first] = file.endsWith('-wal') ? [FRAME, WAL_HEADER] : [PAGE, 0];
  const begin = Math.max(first, bytes.length - pages * unit);
  const whole = [];
  for (let at = bytes.length - unit; at >= begin; at -= unit) {
    whole.push(cut(at), filled(at, unit, 0), filled(at, unit, 0xff), cut(at + (unit >> 1)));
  }
  const kinds = [
    (at: number) => flipped(at, below(random, 8)),
    (at: number) => flipped(at, below(random, 8)),
    (at: number) => filled(at, 1 + below(random, 64), 0),
    (at: number) => filled(at, 1 + below(random, 64), 0xff),
    (at: number) => filled(at, bytes.length - at, 0),
    cut,
  ];
  const sampled = Array.from({ length: samples }, (_, index) => {
    const at = begin + below(random, bytes.length - begin);
    return (kinds[index % kinds.length] ?? cut)(at);
  });
  return [...whole, ...sampled];
}

/** The offset of the first frame in a database's log. */
export const walFrames = (wal: Buffer): number[] =>
  Array.from({ length: Math.floor((wal.length - WAL_HEADER) / FRAME) }, (_, index) => WAL_HEADER + index * FRAME);

/** Every byte of a file from one offset on, damaged in each way. */
export function* everyByte(bytes: Buffer, from = 0): Iterable<Damage> {
  for (let at = from; at < bytes.length; at += 1) {
    yield cut(at);
    yield filled(at, 1, 0);
    yield filled(at, 1, 0xff);
    yield flipped(at, at % 8);
  }
}

const cut = (at: number): Damage => ({ name: `cut at ${at}`, apply: (bytes) => Buffer.from(bytes.subarray(0, at)) });

const filled = (at: number, length: number, value: number): Damage => ({
  name: `${length} bytes from ${at} are ${value}`,
  apply: (bytes) => Buffer.from(bytes).fill(value, at, Math.min(bytes.length, at + length)),
});

const flipped = (at: number, bit: number): Damage => ({
  name: `bit ${bit} of byte ${at} is flipped`,
  apply: (bytes) => {
    const turned = Buffer.from(bytes);
    turned[at] = (turned[at] ?? 0) ^ (1 << bit);
    return turned;
  },
});
