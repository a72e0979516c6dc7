// Finds data that identifies a person by its form alone (S4-73, C92), regardless of the case: addresses, numbers,
// dates.
//
// Not found: street addresses; names (`case-facts.ts` finds names that occur in the case); numbers without a check
// digit, a known form or a word that announces them; and dates of birth without a nearby word of birth.

import type { FindingKind } from '../../core/contract/policy/content-checks.js';
import { findPhoneNumbersInText, isSupportedCountry } from 'libphonenumber-js';
import { electronicFormatIBAN, isValidIBAN } from 'ibantools';

const EMAIL = /[^\s@<>"(),;:]{1,64}@[^\s@<>"(),;:]{1,190}\.\p{L}{2,}/u;
const EMAIL_SPELT =
  /[\p{L}\p{N}._+-]{1,64}\s*[[({]\s*at\s*[\])}]\s*[\p{L}\p{N}-]{1,64}(?:\s*[[({]\s*dot\s*[\])}]\s*|\.)\p{L}{2,}/iu;

/** Numbers with a form of their own: US social security, UK national insurance. */
const DOCUMENT_FORMS = [
  /(?<![\d-])(?!000|666|9\d\d)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![\d-])/,
  /\b(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z]{2}\s?\d{2}\s?\d{2}\s?\d{2}\s?[A-D]\b/,
];
const DOCUMENT_NAMED = new RegExp(
  "\\b(?:passport|reisepass|passeport|pasaporte|driv(?:er|ing)[’']?s?\\s+licen[cs]e|licen[cs]e|identity card|id card|" +
    'personalausweis|dni|social security|ssn|tax id|tin|national insurance|policy|medical record|mrn|patient|visa|' +
    'claim)\\b[\\s.:#]{0,3}(?:(?:no|nr|num(?:ber)?|id|card|file)\\b[\\s.:#]{0,3}){0,3}(?:is\\s+)?' +
    '(?=(?:[A-Z/-]{0,12}\\d){4})[A-Z0-9][A-Z0-9/-]{4,}',
  'iu',
);

const PRIVILEGE_MARKS =
  /privileged\s*(?:and|&|\/)\s*confidential|attorney[\s–-]+client\s+(?:privileged|communication)|attorney\s+work\s+product|(?:prepared\s+)?in\s+anticipation\s+of\s+litigation/iu;

/** The kinds of identifying data in the text. */
export function findIdentifyingData(text: string, countries: readonly string[]): readonly FindingKind[] {
  const found: FindingKind[] = [];
  if (findBirthDates(text).length > 0) found.push('birth_date');
  if (EMAIL.test(text) || EMAIL_SPELT.test(text)) found.push('email');
  const rest = stripDates(text);
  if (hasPhoneNumber(rest, countries)) found.push('phone');
  if (hasAccountNumber(rest)) found.push('account_number');
  if (DOCUMENT_FORMS.some((form) => form.test(rest)) || DOCUMENT_NAMED.test(rest)) found.push('document_number');
  if (PRIVILEGE_MARKS.test(text)) found.push('privilege_mark');
  return found;
}

// Dates in the forms that people write, and which of them are dates of birth (S4-73).

const MONTHS: Readonly<Record<string, number>> = {
  ...{ january: 1, february: 2, march: 3, april: 4, may: 5, june: 6, july: 7, august: 8, september: 9 },
  ...{ october: 10, november: 11, december: 12, jan: 1, feb: 2, mar: 3, apr: 4, jun: 6, jul: 7, aug: 8, sep: 9 },
  ...{ sept: 9, oct: 10, nov: 11, dec: 12, januar: 1, februar: 2, märz: 3, mai: 5, juni: 6, juli: 7, oktober: 10 },
  ...{ dezember: 12, janvier: 1, février: 2, mars: 3, avril: 4, juin: 6, juillet: 7, août: 8, septembre: 9 },
  ...{ octobre: 10, novembre: 11, décembre: 12, enero: 1, febrero: 2, marzo: 3, abril: 4, mayo: 5, junio: 6 },
  ...{ julio: 7, agosto: 8, septiembre: 9, octubre: 10, noviembre: 11, diciembre: 12 },
};
const MONTH = Object.keys(MONTHS)
  .sort((a, b) => b.length - a.length)
  .join('|');
const YEAR = '(?:1[89]|20)\\d{2}';

const FORMS: readonly RegExp[] = [
  new RegExp(
    `\\b(?<d>\\d{1,2})(?:st|nd|rd|th|\\.)?\\s+(?:of\\s+|de\\s+)?(?<m>${MONTH})\\b\\.?,?\\s+(?:de\\s+)?(?<y>${YEAR})`,
    'giu',
  ),
  new RegExp(`\\b(?<m>${MONTH})\\b\\.?\\s+(?<d>\\d{1,2})(?:st|nd|rd|th)?,?\\s+(?<y>${YEAR})`, 'giu'),
  new RegExp(`(?<!\\d)(?<y>${YEAR})[-/.](?<m>\\d{1,2})[-/.](?<d>\\d{1,2})(?!\\d)`, 'gu'),
  new RegExp(`(?<!\\d)(?<d>\\d{1,2})\\s?[-/.]\\s?(?<m>\\d{1,2})\\s?[-/.]\\s?(?<y>${YEAR}|\\d{2})(?!\\d)`, 'gu'),
];

export interface FoundDate {
  /** As `year-month-day`; two names if day and month are ambiguous. */
  readonly names: readonly string[];
  readonly at: number;
  readonly end: number;
}

export function findDates(text: string): readonly FoundDate[] {
  return FORMS.flatMap((form) =>
    [...text.matchAll(form)].map((match) => {
      const { y = '', m = '', d = '' } = match.groups ?? {};
      const year = y.length === 2 ? Number(`19${y}`) : Number(y);
      const month = MONTHS[m.toLowerCase()] ?? Number(m);
      const day = Number(d);
      const names = [nameOf(year, month, day), nameOf(year, day, month)].filter((name) => name !== null);
      return {
        names: /^\d+$/.test(m) ? names : names.slice(0, 1),
        at: match.index,
        end: match.index + match[0].length,
      };
    }),
  ).filter(({ names }) => names.length > 0);
}

const nameOf = (year: number, month: number, day: number): string | null =>
  month >= 1 && month <= 12 && day >= 1 && day <= 31 ? `${year}-${month}-${day}` : null;

const BIRTH_WORDS =
  /\b(?:born|birth(?:day|date)?|b(?:irth)?_?date|d\.?\s?o\.?\s?b\b|geb(?:oren)?\b|geburts\w*|née?\b|naissance|nacid[oa]|nacimiento)/iu;
/** Maximum distance between a word of birth and its date. */
const NEAR_CHARS = 48;

/** The dates near a word of birth. */
export const findBirthDates = (text: string): readonly FoundDate[] =>
  findDates(text).filter(({ at, end }) => BIRTH_WORDS.test(text.slice(Math.max(0, at - NEAR_CHARS), end + NEAR_CHARS)));

/** The text without its dates, whose digits belong to no other number. */
export const stripDates = (text: string): string => FORMS.reduce((rest, form) => rest.replace(form, ' '), text);

// Phone numbers, by the numbering plans of the countries.

/** A longer text is searched in parts that overlap by the length of a number. */
const PART_CHARS = 8_192;
const OVERLAP_CHARS = 64;

/** The usual form of a number of North America, also of one that is not in use. */
const WRITTEN_NUMBER = /(?<!\d)\(\d{3}\) ?\d{3}[-. ]\d{4}(?!\d)/;

/** @param countries ISO 3166-1 codes of countries whose numbers are also found without the country prefix */
function hasPhoneNumber(text: string, countries: readonly string[]): boolean {
  if (WRITTEN_NUMBER.test(text)) return true;
  const known = countries.filter((country) => isSupportedCountry(country));
  const plans = known.length === 0 ? [undefined] : known;
  for (let start = 0; start < text.length; start += PART_CHARS - OVERLAP_CHARS) {
    const part = text.slice(start, start + PART_CHARS);
    if (!/\d(?:.{0,3}\d){5}/s.test(part)) continue;
    if (plans.some((country) => findPhoneNumbersInText(part, country).length > 0)) return true;
  }
  return false;
}

// Numbers of bank accounts and payment cards, detected by their check digits or by the word before them.

const IBAN = /(?<![\p{L}\p{N}])[A-Z]{2}\s?\d{2}(?:[ -]?[A-Z0-9]){11,30}(?![\p{L}\p{N}])/giu;
/** Digits in groups: a card number, perhaps with other numbers before and after it. */
const GROUPS = /\d+(?:[ -]\d+)*/g;
const CARD_DIGITS = { min: 13, max: 19 } as const;
const NAMED_NUMBER =
  /\b(?:account|acct|a\/c|konto|kontonummer|compte|cuenta|routing|sort code|iban)\b[\s.:#\p{L}]{0,16}(?:\d[ -]?){5,}/iu;

const hasAccountNumber = (text: string): boolean =>
  NAMED_NUMBER.test(text) ||
  (text.match(GROUPS) ?? []).some((groups) => holdsCard(groups.split(/[ -]/))) ||
  (text.match(IBAN) ?? []).some((found) =>
    prefixesOf(electronicFormatIBAN(found) ?? '').some((iban) => isValidIBAN(iban)),
  );

/** After an IBAN in groups, the next word may look like one more group. */
const prefixesOf = (found: string): readonly string[] =>
  Array.from({ length: Math.max(0, found.length - 14) }, (_, dropped) => found.slice(0, found.length - dropped));

/** Whether some consecutive groups are a card number. */
function holdsCard(groups: readonly string[]): boolean {
  for (const first of groups.keys()) {
    let digits = '';
    for (let at = first; at < groups.length; at += 1) {
      digits += groups[at] ?? '';
      if (digits.length > CARD_DIGITS.max) break;
      if (digits.length >= CARD_DIGITS.min && isCard(digits)) return true;
    }
  }
  return false;
}

/** The check digit of payment cards (Luhn). A number that repeats one digit is not a card number. */
function isCard(digits: string): boolean {
  if (/^(\d)\1*$/.test(digits)) return false;
  let sum = 0;
  for (let at = 0; at < digits.length; at += 1) {
    const digit = Number(digits[digits.length - 1 - at]);
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
