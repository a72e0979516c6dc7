// Finds what a promotion would carry over from its case (S4-73, C92): passages of the case, and data that identifies a
// person. The record is parsed once, then each text of the case is read once. The run's input records the results as
// facts for the policy, so a replay needs neither the detectors nor the case.

import { isWithheld } from '../../core/contract/artifact-ref.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import { columnsOf, type Catalogue, type TargetDefinition } from '../../core/contract/policy/catalogue.js';
import {
  COUNTRIES,
  PASSAGE_WORDS,
  type ContentChecks,
  type FindingKind,
} from '../../core/contract/policy/content-checks.js';
import { findingFlag } from '../../core/policy/content/content-findings.js';
import { decodeReadings, listSearchReadings } from './decode-readings.js';
import { createJointPassageSearch, stringsIn, type PassageCandidate, type PassageSearch } from './passage-search.js';
import { EMBEDDED_TEXT } from '../../core/policy/authorize-run.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace } from '../../engine/ports/pace.js';
import type { CaseHistory } from '../../runtime/case/case-history.js';
import { CaseFacts, type CaseIds } from './case-facts.js';
import { findIdentifyingData } from './identifying-data.js';

/** A record with more text is not searched: it counts as embedded text. */
export const RECORD_CHARS_MAX = 1_048_576;

/** Words that count as a passage if they are the whole value. */
const VALUE_WORDS_MIN = 5;
/** Words that count as a passage if they are all the text between two punctuation marks. */
const CLAUSE_WORDS_MIN = 6;
/** For the whole record, with its values joined: the minimum of a passage that was cut into pieces. */
const JOINED = { words: 8, wordsMin: 3, letters: 64 } as const;
/** Letters that count as a passage in a value without spaces between words. */
const UNSPACED_LETTERS = 24;

/** The promoted record, and how the lane wants it searched. */
export interface PromotedRecord {
  readonly record: JsonObject;
  readonly target: TargetDefinition | undefined;
  readonly checks: ContentChecks;
  readonly catalogue: Catalogue;
  readonly ids: CaseIds;
}

/** A record as candidates of the passage search, and as texts to check for identifying data. */
interface SearchTexts {
  readonly candidates: readonly PassageCandidate[];
  readonly texts: readonly string[];
}

/** The search for one record. */
export class ContentSearch {
  readonly #own: readonly FindingKind[];
  readonly #passages: PassageSearch;
  readonly #facts: CaseFacts;

  private constructor({ candidates, texts }: SearchTexts, { checks, catalogue, ids }: PromotedRecord) {
    this.#own = texts.flatMap((text) => findIdentifyingData(text, checks.countries ?? COUNTRIES));
    this.#passages = createJointPassageSearch(candidates);
    const names = { columns: nameColumns(checks, catalogue), known: checks.known_names ?? [] };
    this.#facts = new CaseFacts(texts, names, ids);
  }

  /** @returns null for a record with too much text */
  static create(carried: PromotedRecord): ContentSearch | null {
    const parts = splitRecord(carried);
    return parts === null ? null : new ContentSearch(parts, carried);
  }

  /** Reads one text of the case. @returns whether a passage of it occurs in the record */
  read(bytes: Uint8Array): boolean {
    let occurs = false;
    for (const text of textsOf(bytes)) {
      this.#facts.read(text);
      occurs ||= this.#passages.occursIn(text);
    }
    return occurs;
  }

  /** The findings so far, other than passages: from the form of the record alone, and from the texts of the case. */
  get findings(): readonly FindingKind[] {
    return [...new Set([...this.#own, ...this.#facts.found])].sort();
  }
}

/** @returns null for too much text */
function splitRecord({ record, target, checks }: PromotedRecord): SearchTexts | null {
  const strings = stringsIn(record);
  if (strings === null) return null;
  const joined = strings.join('\n');
  if (joined.length > RECORD_CHARS_MAX) return null;
  const words = checks.passage_words ?? PASSAGE_WORDS;
  const values = [...new Set(valuesOf(record, target))];
  const candidates: PassageCandidate[] = [{ text: joined, ...JOINED }];
  for (const value of values) {
    for (const { text, unspaced } of listSearchReadings(value)) {
      candidates.push({
        text,
        words,
        wordsMin: VALUE_WORDS_MIN,
        letters: unspaced ? UNSPACED_LETTERS : JOINED.letters,
      });
      if (!unspaced) candidates.push(...clausesOf(text, words));
    }
  }
  return { candidates, texts: [...values, ...values.flatMap(decodeReadings)].map(stripInvisible) };
}

const stripInvisible = (text: string): string => text.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '');

const clausesOf = (text: string, words: number): readonly PassageCandidate[] =>
  words <= CLAUSE_WORDS_MIN
    ? []
    : text
        .split(/[.,;:!?()[\]"“”\n\r]+/u)
        .map((clause) => ({ text: clause, words, wordsMin: CLAUSE_WORDS_MIN, letters: null }));

/** The free text of a record, per value: without column names, and without values that the schema lists. */
function valuesOf(record: JsonObject, target: TargetDefinition | undefined): readonly string[] {
  const columns = target === undefined ? {} : columnsOf(target);
  return Object.entries(record).flatMap(([name, value]) => {
    const schema = columns[name];
    return schema !== undefined && ('enum' in schema || 'const' in schema) ? [] : textsIn(value);
  });
}

/** Strings, member names and numbers, separately. `stringsIn` has counted them. */
function textsIn(value: Json): readonly string[] {
  const found: string[] = [];
  const rest: Json[] = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (typeof next === 'string') found.push(next);
    else if (typeof next === 'number') found.push(String(next));
    else if (Array.isArray(next)) for (const element of next as readonly Json[]) rest.push(element);
    else if (isJsonObject(next)) {
      for (const [name, member] of Object.entries(next)) {
        found.push(name);
        rest.push(member);
      }
    }
  }
  return found;
}

/** Names of columns that contain names. */
const NAME_COLUMN = /name|alias|aka|client|person|party|contact|author|witness|spouse|parent|child/i;

/**
 * The tables of a case that contain names: those that the lane lists, otherwise `entities` and tables that may identify
 * a person.
 */
function nameColumns({ names }: ContentChecks, { registrations }: Catalogue): ReadonlyMap<string, readonly string[]> {
  const configured = Object.entries(names ?? {});
  const found = registrations.targets
    .filter(({ name, plane, confidentiality }) => {
      return plane === 'case' && (name === 'entities' || confidentiality.includes('contains_pii'));
    })
    .map(
      (target) => [target.name, Object.keys(columnsOf(target)).filter((column) => NAME_COLUMN.test(column))] as const,
    );
  return new Map([...found, ...configured]);
}

/** Most content is JSON, in which words stand between escapes: it is read with and without them. */
function textsOf(bytes: Uint8Array): readonly string[] {
  const text = Buffer.from(bytes).toString('utf8');
  return text.includes('\\') ? [text, unescapeJson(text)] : [text];
}

const unescapeJson = (text: string): string =>
  text
    .replace(/\\u([0-9a-fA-F]{4})/gu, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\[ntrbf"\\/]/gu, ' ');

/** Limit of case text that is searched. A larger case counts as containing the record. */
export const SEARCHED_BYTES_MAX = 268_435_456;

interface SearchSources {
  readonly store: LedgerStore;
  readonly pace: Pace;
  /** Default: `SEARCHED_BYTES_MAX`. */
  readonly bytesMax?: number;
}

/**
 * S4-73, C92: whether the record repeats a passage of the case in the ledger, or identifies a person.
 * @returns the policy flags for embedded text and for each finding
 */
export async function findCarriedOver(
  sources: SearchSources,
  history: CaseHistory,
  carried: PromotedRecord,
): Promise<readonly string[]> {
  const search = ContentSearch.create(carried);
  if (search === null) return [EMBEDDED_TEXT];
  const embedded = await searchCase(sources, history, search);
  const flags = search.findings.map(findingFlag);
  return embedded ? [EMBEDDED_TEXT, ...flags] : flags;
}

/** Reads the texts of the case. @returns whether a passage was found, or a text could not be searched */
async function searchCase(sources: SearchSources, history: CaseHistory, search: ContentSearch): Promise<boolean> {
  const { store, pace, bytesMax = SEARCHED_BYTES_MAX } = sources;
  const { case_id } = history.slice;
  const pause = pace.begin(0);
  let bytes = 0;
  let embedded = false;
  for await (const entries of history.entries(['input'])) {
    for (const { entry } of entries) {
      for (const artifact of await store.artifactsOf(entry)) {
        // Requests for promotions and exports are not texts of the case: their content is found where it comes from.
        if (artifact.case_id !== case_id || artifact.kind === 'request') continue;
        // An erased text cannot be searched any more.
        if (isWithheld(artifact)) return true;
        bytes += artifact.bytes.byteLength;
        if (bytes > bytesMax) return true;
        embedded = search.read(artifact.bytes) || embedded;
        // The search only computes, so it yields to other work between two texts.
        await pause();
      }
    }
  }
  return embedded;
}
