// Seeded mutations of the bytes of real payloads and real policies.

import type { Chance } from './chance.js';

/** Tokens that have deceived parsers and path checks, and tokens of the contract itself. */
const PAYLOAD_WORDS = [
  ...['{', '}', '[', ']', '"', ':', ',', '\\', '/', '..', '/../', '//', '\\u0000', '\\ud800', '\\u002e', '%2e%2e/'],
  ...['null', 'true', '1e999', '-0', '""', '{}', '[]', '\n', '\r', '\t', ' ', '\u0000', '\ufeff', '\u202e', '\u2028'],
  ...['"__proto__":{},', '"id":1,', '"action":"THINK",', '"\\u0061ction":"DELETE_FILE",', '"args":{},', '"args":null,'],
  ...[
    '/sandbox/',
    '/etc/passwd',
    '/proc/self/environ',
    'THINK',
    'FINISH',
    'DELETE_FILE',
    '.txt',
    '.md',
    '.sh',
    '1.0.0',
  ],
];
/** Bytes that are not UTF-8. */
const BROKEN = [[0x80], [0xc0, 0xaf], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xff, 0xfe]];

export const PAYLOAD_TOKENS: readonly Uint8Array[] = [
  ...PAYLOAD_WORDS.map((word) => new Uint8Array(Buffer.from(word))),
  ...BROKEN.map((bytes) => Uint8Array.from(bytes)),
];

/** Maximum size of a mutant, in bytes: a larger payload is rejected by its size alone. */
const BYTES_MAX = 80_000;

type Mutation = (bytes: Uint8Array, chance: Chance, world: World) => Uint8Array;

interface World {
  readonly tokens: readonly Uint8Array[];
  /** Another payload, to copy from. */
  readonly other: Uint8Array;
}

const replace = (bytes: Uint8Array, from: number, to: number, middle: Uint8Array): Uint8Array =>
  new Uint8Array(Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(to)]));

/** A range: mostly a few bytes, sometimes a large part. */
function passage(bytes: Uint8Array, chance: Chance): readonly [from: number, to: number] {
  const from = chance.below(bytes.length + 1);
  const rest = bytes.length - from;
  const length = chance.oneIn(4) ? chance.below(rest + 1) : Math.min(rest, chance.below(9));
  return [from, from + length];
}

const flip: Mutation = (bytes, chance) => {
  const copy = Uint8Array.from(bytes);
  for (let count = 1 + chance.below(4); count > 0 && copy.length > 0; count -= 1) {
    const at = chance.below(copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << chance.below(8));
  }
  return copy;
};

const overwrite: Mutation = (bytes, chance) => {
  const copy = Uint8Array.from(bytes);
  if (copy.length > 0) copy[chance.below(copy.length)] = chance.below(256);
  return copy;
};

const insert: Mutation = (bytes, chance) => {
  const at = chance.below(bytes.length + 1);
  const some = Uint8Array.from({ length: 1 + chance.below(6) }, () => chance.below(256));
  return replace(bytes, at, at, some);
};

const cut: Mutation = (bytes, chance) => {
  const [from, to] = passage(bytes, chance);
  return replace(bytes, from, to, new Uint8Array());
};

const repeat: Mutation = (bytes, chance) => {
  const [from, to] = passage(bytes, chance);
  const times = chance.oneIn(8) ? 2 + chance.below(200) : 2;
  const part = bytes.subarray(from, to);
  const room = Math.max(1, Math.floor(BYTES_MAX / Math.max(1, part.length)));
  return replace(
    bytes,
    from,
    to,
    new Uint8Array(Buffer.concat(Array.from({ length: Math.min(times, room) }, () => part))),
  );
};

const move: Mutation = (bytes, chance) => {
  const [from, to] = passage(bytes, chance);
  const part = bytes.slice(from, to);
  const rest = replace(bytes, from, to, new Uint8Array());
  const at = chance.below(rest.length + 1);
  return replace(rest, at, at, part);
};

const truncate: Mutation = (bytes, chance) => bytes.slice(0, chance.below(bytes.length + 1));

const splice: Mutation = (bytes, chance, { other }) => {
  const [from, to] = passage(other, chance);
  const [start, end] = passage(bytes, chance);
  return replace(bytes, start, end, other.subarray(from, to));
};

const cross: Mutation = (bytes, chance, { other }) =>
  replace(bytes, chance.below(bytes.length + 1), bytes.length, other.subarray(chance.below(other.length + 1)));

const word: Mutation = (bytes, chance, { tokens }) => {
  const [from, to] = chance.oneIn(2) ? passage(bytes, chance) : [chance.below(bytes.length + 1), 0];
  return replace(bytes, from, Math.max(from, to), chance.pick(tokens));
};

/** After a quote, a comma or a bracket, a token is much more often grammatical than elsewhere. */
const wordAtBorder: Mutation = (bytes, chance, { tokens }) => {
  const start = chance.below(bytes.length + 1);
  const found = bytes.findIndex((byte, at) => at >= start && BORDERS.has(byte));
  const at = found < 0 ? bytes.length : found + 1;
  return replace(bytes, at, at, chance.pick(tokens));
};
const BORDERS = new Set(Buffer.from('"{}[],:/\n'));

const STRING = /"(?:[^"\\\n]|\\.)*"/g;

/** Replaces a whole string by another: the result is mostly still JSON, and is processed further. */
const otherString: Mutation = (bytes, chance, { other, tokens }) => {
  const [mine, theirs] = [bytes, other].map((from) => [...Buffer.from(from).toString('latin1').matchAll(STRING)]);
  if (mine === undefined || mine.length === 0) return bytes;
  const { index, 0: text } = chance.pick(mine);
  const quotedToken = Buffer.concat([Buffer.from('"'), chance.pick(tokens), Buffer.from('"')]);
  const found = theirs === undefined || theirs.length === 0 || chance.oneIn(4) ? null : chance.pick(theirs)[0];
  return replace(bytes, index, index + text.length, found === null ? quotedToken : Buffer.from(found, 'latin1'));
};

const MUTATIONS: readonly Mutation[] = [
  ...[flip, overwrite, insert, cut, repeat, move, truncate, splice, cross],
  ...[word, word, wordAtBorder, wordAtBorder],
  ...Array.from({ length: 10 }, () => otherString),
];

/** `bytes` after one to four mutations; never the array itself. */
export function mutate(bytes: Uint8Array, chance: Chance, world: World): Uint8Array {
  let mutant = Uint8Array.from(bytes);
  const count = chance.oneIn(3) ? 2 + chance.below(3) : 1;
  for (let done = 0; done < count; done += 1) {
    mutant = Uint8Array.from(chance.pick(MUTATIONS)(mutant, chance, world).subarray(0, BYTES_MAX));
  }
  return mutant;
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/** The same payload with a new id: otherwise all mutants of one payload would be rejected as duplicates. */
export function withFreshId(bytes: Uint8Array, chance: Chance): Uint8Array {
  const text = Buffer.from(bytes).toString('latin1');
  const digits = (count: number): string => Array.from({ length: count }, () => chance.below(16).toString(16)).join('');
  const fresh = `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`;
  return new Uint8Array(Buffer.from(text.replace(UUID, fresh), 'latin1'));
}
