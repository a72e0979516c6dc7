// Detects phone numbers in text, by the numbering plans of the countries.

import { findPhoneNumbersInText, isSupportedCountry } from 'libphonenumber-js';

/** A longer text is searched in parts that overlap by the length of a number. */
const PART_CHARS = 8_192;
const OVERLAP_CHARS = 64;

/** The usual form of a number of North America, also of one that is not in use. */
const WRITTEN_NUMBER = /(?<!\d)\(\d{3}\) ?\d{3}[-. ]\d{4}(?!\d)/;

/** @param countries ISO 3166-1 codes of countries whose numbers are also found without the country prefix */
export function hasPhoneNumber(text: string, countries: readonly string[]): boolean {
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
