// Decodes other forms of a text in which it could contain a copied passage: encodings and paddings that a reader can
// undo without a key (S4-73). Each form is an additional reading of the candidate; sources are read unchanged.
//
// Decoded: base64 and base64url at any offset, hex (plain, `\x`, `0x`), `\u` and percent escapes, HTML entities, ROT13,
// reversed text, reversed word order, letters separated by spaces, and encodings nested up to three deep. Not decoded:
// compression, encryption, other bases and shifts, look-alike letters, text in images.

import { decodeNumericEntities } from './passage-search.js';

/** Maximum nesting of encodings. */
const DEPTH_MAX = 3;
/** Maximum size of all readings of one text, as a multiple of its length; further readings are skipped. */
const GROWTH_MAX = 16;
/** An encoded run below this length cannot contain a passage. */
const ENCODED_CHARS_MIN = 16;

/** One reading of a text, and whether its word breaks are lost. */
export interface TextReading {
  readonly text: string;
  readonly unspaced: boolean;
}

/** The decoded forms of a text, without the text itself. */
export function decodeReadings(text: string): readonly string[] {
  const found = new Set<string>();
  let left = text.length * GROWTH_MAX;
  let last: readonly string[] = [text];
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    const next: string[] = [];
    for (const each of last) {
      for (const decoded of decodingsOf(each)) {
        if (decoded === text || found.has(decoded) || decoded.length > left) continue;
        left -= decoded.length;
        found.add(decoded);
        next.push(decoded);
      }
    }
    last = next;
  }
  return [...found];
}

/** The text and its decoded forms, and each of them reversed, shifted, and with its single letters joined. */
export function listSearchReadings(text: string): readonly TextReading[] {
  const readings: TextReading[] = [];
  for (const each of [text, ...decodeReadings(text)]) {
    readings.push({ text: each, unspaced: false });
    readings.push({ text: rot13(each), unspaced: false });
    readings.push({ text: Array.from(each).reverse().join(''), unspaced: false });
    readings.push({ text: (each.match(/\S+/gu) ?? []).reverse().join(' '), unspaced: false });
    const joined = withoutSpacing(each);
    if (joined !== null) readings.push({ text: joined, unspaced: true });
    const long = (each.match(/[\p{L}\p{N}]{24,}/gu) ?? []).join(' ');
    if (long !== '') readings.push({ text: long, unspaced: true });
  }
  return readings;
}

function decodingsOf(text: string): readonly string[] {
  return [
    text.replace(/\\u([0-9A-Fa-f]{4})/gu, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (run) => utf8(Buffer.from(run.replaceAll('%', ''), 'hex')) ?? run),
    withoutEntities(text),
    ...fromHex(text),
    ...fromBase64(text),
  ];
}

/** Pairs of hex digits with any single separator between them. */
const HEX = /(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[\s:,;-]{0,2}){8,}/g;

const fromHex = (text: string): readonly string[] =>
  (text.match(HEX) ?? []).flatMap((run) => {
    const digits = run.replace(/\\x|0x|[^0-9A-Fa-f]/g, '');
    return [digits, digits.slice(1, -1)]
      .map((pairs) => utf8(Buffer.from(pairs, 'hex')))
      .filter((decoded) => decoded !== null);
  });

const BASE64 = /[A-Za-z0-9+/_-]{16,}={0,2}/g;

/** Also decodes text with line breaks, and a run that begins with up to three foreign characters. */
function fromBase64(text: string): readonly string[] {
  const joined = text.replace(/[\s.]/gu, '');
  const runs = new Set([...(text.match(BASE64) ?? []), ...(joined.match(BASE64) ?? [])]);
  return [...runs].flatMap((run) =>
    [0, 1, 2, 3]
      .map((offset) => run.slice(offset))
      .filter((part) => part.length >= ENCODED_CHARS_MIN)
      .map((part) => utf8(Buffer.from(part, 'base64')))
      .filter((decoded) => decoded !== null),
  );
}

const DECODER = new TextDecoder('utf-8');
/** Decoded text must consist mostly of letters, digits and blanks. */
const READABLE_SHARE = 0.8;

/** @returns null for bytes that are not readable text; a truncated character at either end is ignored */
function utf8(bytes: Uint8Array): string | null {
  const text = DECODER.decode(bytes).replaceAll('\ufffd', '');
  if (text.length < 4) return null;
  const readable = (text.match(/[\p{L}\p{N}\p{P}\s]/gu) ?? []).length;
  return readable / Array.from(text).length >= READABLE_SHARE && text.length * 4 >= bytes.byteLength ? text : null;
}

/** The entity name of an accented letter contains the letter and its accent: `&eacute;`, `&Uuml;`, `&szlig;`. */
const withoutEntities = (text: string): string =>
  decodeNumericEntities(text)
    .replace(/&([A-Za-z])(?:acute|grave|circ|uml|tilde|cedil|ring|slash|caron);/g, '$1')
    .replace(/&szlig;/g, 'ß')
    .replace(/&(?:shy|zwnj|zwj);/g, '')
    .replace(/&(?:nbsp|amp|lt|gt|quot|apos|ensp|emsp|thinsp);/g, ' ');

const rot13 = (text: string): string =>
  text.replace(/[A-Za-z]/g, (letter) => {
    const base = letter <= 'Z' ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });

const UNSEEN = /[\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}]/gu;
const WORD = /[\p{L}\p{N}]+/gu;
const SPACED_LETTERS_MIN = 5;
/** Maximum characters between two letters of one word. */
const SPACING_MAX = 4;

/** Joins runs of five or more single letters; null if the text has no such run. */
function withoutSpacing(text: string): string | null {
  const bare = text.replace(UNSEEN, '');
  const joined: string[] = [];
  let letters: string[] = [];
  let end = 0;
  const endRun = (): void => {
    if (letters.length >= SPACED_LETTERS_MIN) joined.push(letters.join(''));
    letters = [];
  };
  // One expression for a whole run takes seconds to compile, because it contains the table of letters dozens of times.
  for (const { 0: word, index } of bare.matchAll(WORD)) {
    if (!isAtMost(bare.slice(end, index), SPACING_MAX)) endRun();
    if (isAtMost(word, 1)) letters.push(word);
    else endRun();
    end = index + word.length;
  }
  endRun();
  return joined.length === 0 ? null : joined.join(' ');
}

/** Whether a text has at most `chars` characters. */
const isAtMost = (text: string, chars: number): boolean => text.length <= 2 * chars && Array.from(text).length <= chars;
