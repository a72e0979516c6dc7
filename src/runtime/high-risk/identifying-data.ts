// What identifies a person by its form alone (S4-73, C92): addresses, numbers and dates, whatever the case holds.
//
// Not found: addresses of streets, names (`case-facts.ts` finds those that stand in the case), numbers without a check
// digit, a known form or a word that says what they are, and dates of birth that no word of birth stands near to.

import type { FindingKind } from '../../contract/policy/content-checks.js';
import { hasAccountNumber } from './account-numbers.js';
import { findBirthDates, stripDates } from './dates.js';
import { hasPhoneNumber } from './phone-numbers.js';

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

/** What the text says of a person by itself. */
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
