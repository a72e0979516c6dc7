// C56, S4-73: finds passages of a case that were copied into another text. It compares what a person would read: words,
// without case, accents, punctuation, markup and invisible characters.
//
// Not covered: paraphrase, translation, look-alike letters (homoglyphs), inserted or replaced words, texts in an
// encoding of their own (`decode-readings.ts` decodes some of them first), and passages under the limits below. A match
// is certain; the lack of a match proves nothing.

import { isJsonObject, type Json } from '../../core/contract/json.js';

/** Approximate characters per piece of a source; pieces are normalized one at a time. */
const PIECE_CHARS = 32_768;

const STRINGS_MAX = 100_000;
const STRINGS_CHARS_MAX = 16_777_216;

/** The passages of one candidate. The candidate limits the memory use, not the sources. */
export interface PassageSearch {
  /** Whether a passage of the candidate also occurs in the source. Linear in the source. */
  readonly occursIn: (source: string) => boolean;
}

/** A text whose passages are searched for. */
export interface PassageCandidate {
  readonly text: string;
  /** The number of consecutive words that count as a passage. */
  readonly words: number;
  /** A text with fewer words than `words`, but at least this many, counts as a whole. */
  readonly wordsMin: number;
  /**
   * The number of consecutive letters that count as a passage, whatever separates them; null to skip the letter search.
   */
  readonly letters: number | null;
}

/**
 * S4-73: searches for the passages of many texts separately: no passage spans two texts. A passage has consecutive
 * words or, with any word breaks, consecutive letters, so `c o n f i d e n t i a l` and `con-fidential` are found in
 * long ones. Digits are words; so is each character of a script without spaces between words.
 */
export function createJointPassageSearch(candidates: readonly PassageCandidate[]): PassageSearch {
  const words = new Map<number, Set<string>>();
  const letters = new Map<number, string[]>();
  const vocabulary = new Set<string>();
  for (const candidate of candidates) {
    for (const reading of readingsOf(candidate.text)) {
      const text = piecesOf(reading).map(normalizeText).join('');
      addWordRuns(words, vocabulary, wordsOf(text), candidate);
      if (candidate.letters !== null) appendToGroup(letters, candidate.letters, lettersOf(text));
    }
  }
  const searches = [
    ...[...words].map(([length, runs]) => wordSearch(runs, vocabulary, length)),
    ...[...letters].map(([length, texts]) => letterSearch(texts, length)).filter((search) => search !== null),
  ];
  const occursInReading = (reading: string): boolean => {
    const readers = searches.map((search) => search());
    return piecesOf(reading).some((piece) => {
      const text = normalizeText(piece);
      return readers.some((read) => read(text));
    });
  };
  return { occursIn: (source) => searches.length > 0 && readingsOf(source).some(occursInReading) };
}

/** The words of a text in normalized form: without case, accents and punctuation. */
export const wordsIn = (text: string): readonly string[] => wordsOf(normalizeText(text));

function appendToGroup(groups: Map<number, string[]>, key: number, text: string): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [text]);
  else group.push(text);
}

/**
 * Collects the runs of consecutive words as text. A set of texts has no false matches, and no one can construct
 * collisions.
 */
function addWordRuns(
  groups: Map<number, Set<string>>,
  vocabulary: Set<string>,
  own: readonly string[],
  { words, wordsMin }: PassageCandidate,
): void {
  const length = Math.min(words, own.length);
  if (length < Math.min(wordsMin, words)) return;
  const runs = groups.get(length) ?? new Set<string>();
  groups.set(length, runs);
  for (const word of own) vocabulary.add(word);
  for (let end = length; end <= own.length; end += 1) runs.add(own.slice(end - length, end).join(' '));
}

/**
 * Every string of a JSON value, then every key, each in document order. Joined by line feeds they are one candidate,
 * which reveals a passage that was split into the items of a list.
 * @returns null for more than 100,000 strings or 16 Mi characters: too much to search, so the caller must reject it
 */
export function stringsIn(value: Json): readonly string[] | null {
  const strings: string[] = [];
  const keys: string[] = [];
  let chars = 0;
  // An explicit stack, so that a deep value does not overflow the call stack.
  const rest: Json[] = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const found = typeof next === 'string' ? [next] : isJsonObject(next) ? Object.keys(next) : [];
    for (const text of found) chars += text.length;
    if (strings.length + keys.length + found.length > STRINGS_MAX || chars > STRINGS_CHARS_MAX) return null;
    if (typeof next === 'string') strings.push(next);
    else keys.push(...found);
    const members = isJsonObject(next) ? Object.values(next) : Array.isArray(next) ? (next as readonly Json[]) : [];
    for (let index = members.length - 1; index >= 0; index -= 1) rest.push(members[index] ?? null);
  }
  return [...strings, ...keys];
}

/** Reads a source piece by piece. @returns true once a run of the candidate has occurred */
type PieceReader = (folded: string) => boolean;
/** Creates a new search for each source. */
type PieceReaderFactory = () => PieceReader;

function wordSearch(runs: ReadonlySet<string>, vocabulary: ReadonlySet<string>, length: number): PieceReaderFactory {
  return () => {
    let last: string[] = [];
    return (text) => {
      for (const word of wordsOf(text)) {
        // Stryker disable next-line all: only saves time, because no run has such a word
        if (!vocabulary.has(word)) {
          // Stryker disable next-line all: the same
          last = [];
          continue;
        }
        last.push(word);
        if (last.length > length) last.shift();
        if (last.length === length && runs.has(last.join(' '))) return true;
      }
      return false;
    };
  };
}

/** Searches for runs of consecutive letters and digits, whatever separates them. */
function letterSearch(texts: readonly string[], length: number): PieceReaderFactory | null {
  const runs = new Set<string>();
  // Most letters of a source begin no run of the candidate: one lookup in this table avoids the text comparison.
  const hints = new Uint8Array(HINTS);
  for (const own of texts) {
    hasMatchingRun(own, length, (start, hint) => {
      runs.add(own.slice(start, start + length));
      hints[hint] = 1;
      return false;
    });
  }
  // Stryker disable next-line all: only saves time
  if (runs.size === 0) return null;
  return () => {
    let before = '';
    return (text) => {
      const letters = before + lettersOf(text);
      before = letters.slice(Math.max(0, letters.length - length + 1));
      return hasMatchingRun(
        letters,
        length,
        (start, hint) => hints[hint] === 1 && runs.has(letters.slice(start, start + length)),
      );
    };
  };
}

const HINTS = 1 << 20;
const HINT_BASE = 0x01000193;

/**
 * Whether `matches` accepts some run of `length` letters. Each run is passed as its start and a rolling hash below
 * HINTS.
 */
function hasMatchingRun(letters: string, length: number, matches: (start: number, hint: number) => boolean): boolean {
  let outgoingPower = 1;
  for (let power = 0; power < length; power += 1) outgoingPower = Math.imul(outgoingPower, HINT_BASE);
  let hash = 0;
  for (let end = 0; end < letters.length; end += 1) {
    hash = (Math.imul(hash, HINT_BASE) + letters.charCodeAt(end)) | 0;
    const start = end - length + 1;
    if (start > 0) hash = (hash - Math.imul(outgoingPower, letters.charCodeAt(start - 1))) | 0;
    if (start >= 0 && matches(start, hash >>> 12)) return true;
  }
  return false;
}

const WORD = /[\p{L}\p{N}]+/gu;
const BETWEEN_WORDS = /[^\p{L}\p{N}]+/gu;
/** Scripts without spaces between words: each of their characters counts as a word. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/gu;

const wordsOf = (folded: string): readonly string[] => folded.replace(UNSPACED, ' $& ').match(WORD) ?? [];
const lettersOf = (folded: string): string => folded.replace(BETWEEN_WORDS, '');

/**
 * A text as it is, and as it looks when rendered as markup. Both are read, because what rendering drops (a tag, the
 * target of a link) can contain words.
 */
function readingsOf(text: string): readonly string[] {
  const plain = text.replace(HYPHENATED, '');
  const shown = decodeNumericEntities(plain.replace(TAG, ' ').replace(LINK_TARGET, '] ')).replace(ENTITY, ' ');
  return shown === plain ? [plain] : [plain, shown];
}

// Each of these expressions reads a character at most a few times on any text: a repeated part excludes what follows
// it.
/** A word that was hyphenated at the end of a line. */
const HYPHENATED = /(?<=\p{L})[-\u2010\u2011\u00ad][^\S\n\r\u2028\u2029]*[\n\r\u2028\u2029]\s*(?=\p{L})/gu;
const TAG = /<[/!]?[A-Za-z!-][^<>]*>/g;
const LINK_TARGET = /\]\([^()\s]*\)/g;
const NUMERIC_ENTITY = /&#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}));?/g;
/** Entities that are not letters. The names of accented letters are not decoded. */
const ENTITY = /&(?:nbsp|amp|lt|gt|quot|apos|ndash|mdash|hellip|[lr][sd]quo);/g;

/** A code point that does not exist stays as it is written. */
export const decodeNumericEntities = (text: string): string =>
  text.replace(NUMERIC_ENTITY, (entity, hex?: string, decimal?: string) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : entity;
  });

/** Splits a text at white space, so that no word is cut. A text without white space is one piece. */
function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    SPACE.lastIndex = start + PIECE_CHARS;
    const end = SPACE.test(text) ? SPACE.lastIndex : text.length;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}
const SPACE = /\s/g;

/**
 * Makes letters equal that differ only in case, width, accents or style, and removes invisible characters. Marks are
 * removed before normalization, because sorting a million of them takes very long.
 */
function normalizeText(text: string): string {
  if (PLAIN.test(text)) return text.toLowerCase();
  const bare = text.replace(UNSEEN, '').replace(FORMULA, ' ').normalize('NFKD').replace(UNSEEN, '');
  return bare.toUpperCase().toLowerCase().normalize('NFKD').replace(UNSEEN, '').replace(/ς/g, 'σ');
}
/** White space and visible ASCII. */
const PLAIN = /^[\t-\r -~]*$/;
const UNSEEN = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+/gu;
/** These two characters stand for whole sentences and would make a text many times as long. */
const FORMULA = /[\ufdfa\ufdfb]/g;
