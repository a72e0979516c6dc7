// Finds data that identifies a person because the case contains it (S4-73, C92): names, numbers, dates of birth, ids.
// The candidate is parsed once; then every text of the case is read once.

import { isJsonObject, type Json, parseOwnJson } from '../../core/contract/json.js';
import type { FindingKind } from '../../core/contract/policy/content-checks.js';
import { createJointPassageSearch, wordsIn, type PassageSearch } from './passage-search.js';
import { findBirthDates, findDates, stripDates } from './identifying-data.js';

/** Where the case records names: tables with their columns. Known names are not names of the case. */
export interface NameSources {
  readonly columns: ReadonlyMap<string, readonly string[]>;
  readonly known: readonly string[];
}

/** The ids of the case, its matter and its sessions: none of them belongs in shared knowledge. */
export type CaseIds = readonly string[];

/** Minimum of digits of a number; fewer with letters, but then a minimum of characters. */
const DIGITS_MIN = 5;
const MIXED = { digits: 3, signs: 7 } as const;
const NUMBER = /(?<![\p{L}\p{N}])[\p{Lu}]{0,3}\d(?:[ ./-]?[\p{Lu}\d]){3,30}(?![\p{L}\p{N}])/gu;
const MONEY =
  /[$€£¥]\s?[\d.,]+|\b(?:USD|EUR|GBP)\s?[\d.,]+|(?<![\d.,])[\d.,]+\s?(?:[$€£¥]|(?:USD|EUR|GBP|dollars?|euros?|pounds?)\b)/giu;
/**
 * A proper name of two words or more, with optional initials and name particles between them. A word has at most 64
 * letters: otherwise a single long word would be scanned from each of its letters.
 */
const NAME =
  /(?<!\p{Lu})\p{Lu}[\p{L}'’-]{1,63}(?:\s+(?:(?:\p{Lu}\.?|von|van|de|der|den|del|della|di|da|la|le|bin|ibn|al|ter|zu)\s+){0,3}\p{Lu}[\p{L}'’-]+)+/gu;
const TITLED = /\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Herr|Frau|Madame|Mme|Monsieur|Señora?|Sra?)\.?\s+(\p{Lu}[\p{L}'’-]+)/gu;
const CAPITALISED = /(?<![\p{L}\p{N}])\p{Lu}[\p{L}'’-]+/gu;
const NAME_WORD_LETTERS_MIN = 3;
const NAME_WORDS_MAX = 6;

/** Words of proper names that are not names of persons. */
const INSTITUTIONS = new Set(
  (
    'act agreement america american amendment appeal appeals article association attorney bank board bureau california ' +
    'chapter city civil clause clerk code commission committee company constitution convention corp corporation council ' +
    'county court courts department directive district division europe european evidence exhibit federal florida force ' +
    'general government group house inc insurance international judge judicial justice kingdom labor labour law limited ' +
    'llc llp ltd magistrate ministry motion national new office order party plaintiff defendant police practice ' +
    'procedure procedures protocol public regulation regulations republic review rule rules school section security ' +
    'senate service services state states statute street superior supreme texas title treaty tribunal trust ' +
    'union united university washington york the this that these those a an in on at if when where while after before ' +
    'for from with without by to of and or but not no all any each every ask check keep note never always do does'
  ).split(' '),
);

/** Finds values of the candidate in texts of the case. */
export class CaseFacts {
  readonly #found = new Set<FindingKind>();
  readonly #words: ReadonlySet<string>;
  readonly #capitalised: ReadonlySet<string>;
  readonly #lines: readonly string[];
  readonly #numbers: ReadonlySet<string>;
  readonly #dates: ReadonlySet<string>;
  readonly #pairs: PassageSearch | null;
  readonly #titled: PassageSearch | null;
  readonly #names: NameSources;

  constructor(texts: readonly string[], names: NameSources, ids: CaseIds) {
    const known = new Set(names.known.flatMap(wordsIn));
    const isName = (words: readonly string[]): boolean =>
      words.every((word) => !INSTITUTIONS.has(word) && !known.has(word));
    this.#names = names;
    this.#lines = texts.map((text) => ` ${wordsIn(text).join(' ')} `);
    this.#words = new Set(this.#lines.flatMap((line) => line.split(' ')));
    this.#capitalised = new Set(texts.flatMap((text) => (text.match(CAPITALISED) ?? []).flatMap(wordsIn)));
    this.#numbers = new Set(texts.flatMap(numbersIn));
    this.#dates = new Set(texts.flatMap(findDates).flatMap(({ names: dates }) => dates));
    this.#pairs = createSearch(texts.flatMap(pairsIn).filter(isName), 2);
    this.#titled = createSearch(
      texts.flatMap((text) => [...text.matchAll(TITLED)].map((match) => wordsIn(match[1] ?? ''))).filter(isName),
      1,
    );
    const lower = texts.map((text) => text.toLowerCase());
    const named = ids.filter((id) => id.length >= ID_CHARS_MIN).map((id) => id.toLowerCase());
    if (lower.some((text) => named.some((id) => isWordIn(id, text)))) this.#found.add('case_reference');
  }

  get found(): readonly FindingKind[] {
    return [...this.#found];
  }

  /** Reads one text of the case. */
  read(text: string): void {
    if (!this.#found.has('person_name')) this.#readNames(text);
    if (this.#numbers.size > 0 && !this.#found.has('document_number')) {
      if (numbersIn(text).some((number) => this.#numbers.has(number))) this.#found.add('document_number');
    }
    if (this.#dates.size > 0 && !this.#found.has('birth_date')) {
      const shared = findBirthDates(text).some(({ names }) => names.some((name) => this.#dates.has(name)));
      if (shared) this.#found.add('birth_date');
    }
  }

  #readNames(text: string): void {
    if (this.#pairs?.occursIn(text) === true || this.#titled?.occursIn(text) === true) {
      this.#found.add('person_name');
      return;
    }
    for (const name of namesInProposal(text, this.#names.columns)) {
      if (this.#hasName(name)) this.#found.add('person_name');
    }
  }

  /** All words of the name close together in any order, or one of them alone if it is written as a name. */
  #hasName(name: string): boolean {
    const words = wordsIn(name).filter((word) => word.length >= 2);
    if (words.length === 0 || words.length > NAME_WORDS_MAX) return false;
    const alone = words.filter((word) => word.length >= NAME_WORD_LETTERS_MIN && !INSTITUTIONS.has(word));
    if (alone.some((word) => this.#capitalised.has(word))) return true;
    return (
      words.length > 1 &&
      words.every((word) => this.#words.has(word)) &&
      this.#lines.some((line) => hasWordsNear(line, words))
    );
  }
}

const ID_CHARS_MIN = 4;

/** As a word of its own, not as a part of another. */
function isWordIn(id: string, text: string): boolean {
  for (let at = text.indexOf(id); at >= 0; at = text.indexOf(id, at + 1)) {
    const around = `${text.slice(Math.max(0, at - 1), at)} ${text.slice(at + id.length, at + id.length + 1)}`;
    if (!/[\p{L}\p{N}]/u.test(around)) return true;
  }
  return false;
}

/** Whether all the words occur within a few words of the line. */
function hasWordsNear(line: string, words: readonly string[]): boolean {
  const all = line.trim().split(' ');
  const reach = words.length + 2;
  return all.some((word, at) => {
    if (!words.includes(word)) return false;
    const window = new Set(all.slice(at, at + reach));
    return words.every((each) => window.has(each));
  });
}

function createSearch(names: readonly (readonly string[])[], words: number): PassageSearch | null {
  const texts = names.filter((name) => name.length === words).map((name) => name.join(' '));
  if (texts.length === 0) return null;
  return createJointPassageSearch([...new Set(texts)].map((text) => ({ text, words, wordsMin: words, letters: null })));
}

/** Adjacent words of proper names, without particles. A name that ends with one of INSTITUTIONS is skipped. */
const pairsIn = (text: string): readonly (readonly string[])[] =>
  (text.match(NAME) ?? []).flatMap((name) => {
    const words = name.match(CAPITALISED) ?? [];
    if (wordsIn(words.at(-1) ?? '').some((word) => INSTITUTIONS.has(word))) return [];
    return words.slice(1).flatMap((word, at) => {
      const [first, second] = [wordsIn(words[at] ?? '').at(-1), wordsIn(word)[0]];
      return first === undefined || second === undefined ? [] : [[first, second]];
    });
  });

/** Numbers reduced to letters and digits; without amounts and dates. */
const numbersIn = (text: string): readonly string[] =>
  (stripDates(text).replace(MONEY, ' ').match(NUMBER) ?? [])
    .map((found) => found.replace(/[^\p{L}\p{N}]/gu, ''))
    .filter((found) => {
      const digits = found.replace(/\D/g, '').length;
      return digits >= DIGITS_MIN || (digits >= MIXED.digits && digits < found.length && found.length >= MIXED.signs);
    });

/** The names in a proposal that writes a record of one of these tables. */
function namesInProposal(text: string, columns: NameSources['columns']): readonly string[] {
  if (columns.size === 0 || !text.includes('WRITE_RECORD')) return [];
  const args = argsOf(text);
  const target = args?.['target'];
  const named = typeof target === 'string' ? columns.get(target) : undefined;
  const record = args?.['record'];
  if (named === undefined || !isJsonObject(record)) return [];
  return named.flatMap((column) => textsOf(record[column]));
}

function argsOf(text: string): { readonly [name: string]: Json } | null {
  try {
    const proposal: unknown = parseOwnJson(text);
    const args: unknown = isJsonObject(proposal) ? proposal['args'] : null;
    return isJsonObject(args) ? args : null;
  } catch {
    return null;
  }
}

const textsOf = (value: Json | undefined): readonly string[] =>
  typeof value === 'string'
    ? [value]
    : Array.isArray(value)
      ? (value as readonly Json[]).flatMap(textsOf)
      : isJsonObject(value)
        ? Object.values(value).flatMap(textsOf)
        : [];
