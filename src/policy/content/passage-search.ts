// C56, S4-73: whether words of a case are carried over inside other text. Compared is what people would read: words,
// without case, accents, punctuation, markup and invisible characters.
//
// Not covered: other words for the same (paraphrase, translation), letters that only look alike (homoglyphs), words
// that were put in between or exchanged, texts in an encoding of their own (`decoded-readings.ts` decodes some of them
// before), and passages under the limits below. A text that is found is certain; one that is not found proves nothing.

import { isJsonObject, type Json } from '../../contract/json.js';

/** How long a common run of words has to be. */
const WORDS = 8;
/** A candidate with fewer words than this says nothing that could be told from chance. */
const WORDS_MIN = 3;
/** A run of so many letters for each word counts whatever stands between them: about one and a half times the words. */
const LETTERS_PER_WORD = 8;
/** A source is folded piece by piece, each of about so many characters. */
const PIECE_CHARS = 32_768;

const STRINGS_MAX = 100_000;
const STRINGS_CHARS_MAX = 16_777_216;

/** The runs of one candidate. What they take of memory is bounded by the candidate, not by the sources. */
export interface PassageSearch {
  /** Whether a run of the candidate's words stands in the source as well. Linear in the source. */
  readonly occursIn: (source: string) => boolean;
}

/**
 * S4-73: whether a passage of the source was copied into the candidate: `words` consecutive words, or `8 * words`
 * consecutive letters with any word breaks (so `c o n f i d e n t i a l` and `con-fidential` are found in long
 * passages). A candidate of fewer words, but at least 3, must not stand in the source as a whole; one of 1 or 2 words
 * never counts. Digits are words; so is each character of a script that puts no spaces between words.
 * @param words at least 3
 */
export const hasSharedPassage = (candidate: string, source: string, words = WORDS): boolean =>
  createPassageSearch(candidate, words).occursIn(source);

/** The same for many sources: the candidate is taken apart once. */
export const createPassageSearch = (candidate: string, words = WORDS): PassageSearch =>
  createJointPassageSearch([{ text: candidate, words, wordsMin: WORDS_MIN, letters: words * LETTERS_PER_WORD }]);

/** A text whose passages are searched for. */
export interface PassageCandidate {
  readonly text: string;
  /** So many consecutive words count as a passage. */
  readonly words: number;
  /** A text of fewer words than `words`, but at least so many, counts as a whole. */
  readonly wordsMin: number;
  /** So many consecutive letters count, whatever stands between them; null where letters are not searched for. */
  readonly letters: number | null;
}

/** The passages of many texts, each by itself: no passage begins in one text and ends in another. */
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

/** The words of a text as they are compared: without case, accents and punctuation. */
export const wordsIn = (text: string): readonly string[] => wordsOf(normalizeText(text));

function appendToGroup(groups: Map<number, string[]>, key: number, text: string): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [text]);
  else group.push(text);
}

/** The runs of consecutive words, compared as text: a set has no false hits, and hashes cannot be made to collide. */
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
 * Every string of a JSON value, then every key, each in the order of the document: joined by line feeds they are one
 * candidate, in which a passage is found that was cut into the items of a list.
 * @returns null for more than 100,000 strings or 16 Mi characters: too much to be looked through, so to be refused
 */
export function stringsIn(value: Json): readonly string[] | null {
  const strings: string[] = [];
  const keys: string[] = [];
  let chars = 0;
  // A stack of our own: whatever the depth of the value is, it is not the depth of calls.
  const rest: Json[] = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const found = typeof next === 'string' ? [next] : isJsonObject(next) ? Object.keys(next) : [];
    for (const text of found) chars += text.length;
    if (strings.length + keys.length + found.length > STRINGS_MAX || chars > STRINGS_CHARS_MAX) return null;
    if (typeof next === 'string') strings.push(next);
    else if (isJsonObject(next)) keys.push(...found);
    const members = isJsonObject(next) ? Object.values(next) : Array.isArray(next) ? (next as readonly Json[]) : [];
    for (let index = members.length - 1; index >= 0; index -= 1) rest.push(members[index] ?? null);
  }
  return [...strings, ...keys];
}

/** Reads a source piece by piece. @returns true once a run of the candidate has been read */
type PieceReader = (folded: string) => boolean;
/** A search that can be begun for each source. */
type PieceReaderFactory = () => PieceReader;

function wordSearch(runs: ReadonlySet<string>, vocabulary: ReadonlySet<string>, length: number): PieceReaderFactory {
  return () => {
    let last: string[] = [];
    return (text) => {
      for (const word of wordsOf(text)) {
        if (!vocabulary.has(word)) {
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

/** The runs of consecutive letters and digits, whatever stands between them. */
function letterSearch(texts: readonly string[], length: number): PieceReaderFactory | null {
  const runs = new Set<string>();
  // Most letters of a source begin no run of the candidate: one look at this table spares them the text comparison.
  const hints = new Uint8Array(HINTS);
  for (const own of texts) {
    hasMatchingRun(own, length, (start, hint) => {
      runs.add(own.slice(start, start + length));
      hints[hint] = 1;
      return false;
    });
  }
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

/** Whether some run of so many letters passes; each is given as its start and a rolling hash, from 0 below HINTS. */
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
 * A text as it is, and as it looks where it is shown as markup. Both are read, because what is dropped from the second
 * (a tag, the target of a link) can hold words itself.
 */
function readingsOf(text: string): readonly string[] {
  const plain = text.replace(HYPHENATED, '');
  const shown = plain
    .replace(TAG, ' ')
    .replace(LINK_TARGET, '] ')
    .replace(NUMERIC_ENTITY, decodeEntity)
    .replace(ENTITY, ' ');
  return shown === plain ? [plain] : [plain, shown];
}

// Each of these reads a character at most a few times, whatever the text: what repeats in it excludes what follows.
/** A word that was divided at the end of a line. */
const HYPHENATED = /(?<=\p{L})[-\u2010\u2011\u00ad][^\S\n\r\u2028\u2029]*[\n\r\u2028\u2029]\s*(?=\p{L})/gu;
const TAG = /<[/!]?[A-Za-z!-][^<>]*>/g;
const LINK_TARGET = /\]\([^()\s]*\)/g;
const NUMERIC_ENTITY = /&#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}));?/g;
/** Those that stand for no letter. The names of letters with accents are not decoded. */
const ENTITY = /&(?:nbsp|amp|lt|gt|quot|apos|ndash|mdash|hellip|[lr][sd]quo);/g;

function decodeEntity(entity: string, hex: string | undefined, decimal: string | undefined): string {
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code <= 0x10ffff ? String.fromCodePoint(code) : entity;
}

/** A text in pieces that end with a white space, so that no word is cut; one without white space is one piece. */
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
 * Letters that differ in nothing but case, width, accents or style become one; what is invisible goes. Marks go before
 * the text is normalised as well: to put a million of them in order takes forever.
 */
function normalizeText(text: string): string {
  if (PLAIN.test(text)) return text.toLowerCase();
  const bare = text.replace(UNSEEN, '').replace(FORMULA, ' ').normalize('NFKD').replace(UNSEEN, '');
  return bare.toUpperCase().toLowerCase().normalize('NFKD').replace(UNSEEN, '').replace(/ς/g, 'σ');
}
/** White space, and what can be seen of ASCII. */
const PLAIN = /^[\t-\r -~]*$/;
const UNSEEN = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+/gu;
/** The two signs that stand for a whole sentence would make a text many times as long. */
const FORMULA = /[\ufdfa\ufdfb]/g;
