// Numbers of bank accounts and payment cards, detected by their check digits or by the word before them.

import { electronicFormatIBAN, isValidIBAN } from 'ibantools';

const IBAN = /(?<![\p{L}\p{N}])[A-Z]{2}\s?\d{2}(?:[ -]?[A-Z0-9]){11,30}(?![\p{L}\p{N}])/giu;
/** Digits in groups: a card number, perhaps with other numbers before and after it. */
const GROUPS = /\d+(?:[ -]\d+)*/g;
const CARD_DIGITS = { min: 13, max: 19 } as const;
const NAMED_NUMBER =
  /\b(?:account|acct|a\/c|konto|kontonummer|compte|cuenta|routing|sort code|iban)\b[\s.:#\p{L}]{0,16}(?:\d[ -]?){5,}/iu;

export const hasAccountNumber = (text: string): boolean =>
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
