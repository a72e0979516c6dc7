// The attacked code: how names are compared, counted in votes, and refused for tokens. And versions with a fault, which
// the campaign must find.

import { join } from 'node:path';
import { mintToken, TokenFile } from '../../../src/stores/keys/token-file.js';
import type { Person } from '../../../src/core/contract/person.js';
import { compareNames } from '../../../src/core/contract/person.js';
import { CodedError } from '../../../src/core/errors.js';
import { personOf } from '../../../src/names/person-name.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { KNOWN_NAMES } from './spellings.js';

export interface Subject {
  readonly name: string;
  /** @returns null for a refused name */
  readonly person: (name: string) => Person | null;
  /** The person by whom votes are counted. */
  readonly votes: (name: string) => Person | null;
  /** The person with whom a rule of the overlay is compared. */
  readonly suspends: (person: Person | null) => Person | null;
  /** Whether a token is made for a name, when each of `KNOWN_NAMES` has one. */
  readonly mints: (name: string) => boolean;
}

const GRANT = { role: 'ATTORNEY_ADMIN', rights: ['approve' as const] };

let known: TokenFile | null = null;

/** The real file of tokens, in which every known person has one. */
function mintsFromFile(actor: string): boolean {
  if (known === null) {
    known = new TokenFile(join(tempFolder('tokens'), 'tokens.json'));
    for (const name of KNOWN_NAMES) known.mint({ ...GRANT, actor: name });
  }
  try {
    const { record } = known.mint({ ...GRANT, actor });
    known.revoke(record.id);
    return true;
  } catch (error) {
    if (error instanceof CodedError && error.code === 'USAGE') return false;
    throw error;
  }
}

const realPerson = (name: string): Person | null => {
  const person = personOf(name);
  return typeof person === 'string' ? null : person;
};

export const REAL: Subject = {
  name: 'as it is',
  person: realPerson,
  votes: realPerson,
  suspends: (person) => person,
  mints: mintsFromFile,
};

/** A subject with its own comparison of persons. */
function comparing(name: string, person: Subject['person']): Subject {
  const mints = (actor: string): boolean =>
    KNOWN_NAMES.every((other) => other === actor || compareNames(person(other), person(actor)) === 'other');
  return { name, person, votes: person, suspends: (compared) => compared, mints };
}

const TABLES = realPerson(KNOWN_NAMES[0])?.tables ?? '';
/** One text represents the name. */
const byText = (textOf: (name: string) => string): Subject['person'] => {
  return (name) => {
    const text = textOf(name);
    return { canonical_id: text, skeletons: [text, text], looks: [text.replaceAll(' ', '')], tables: TABLES };
  };
};
/**
 * The real person of a changed name: one letter replaces characters that the tables would ignore, or another character.
 */
const ofChanged = (pattern: RegExp): Subject['person'] => {
  return (name) => realPerson(name.replaceAll(pattern, 'q'));
};
/** The real person, compared by only some of its members. */
const byPart = (part: (person: Person) => readonly [string, string, string]): Subject['person'] => {
  return (name) => {
    const person = realPerson(name);
    if (person === null) return null;
    const [canonical_id, first, second] = part(person);
    return { canonical_id, skeletons: [first, second], looks: [canonical_id], tables: TABLES };
  };
};

export const PLANTED: readonly Subject[] = [
  comparing(
    'raw text',
    byText((name) => name),
  ),
  comparing(
    'NFC alone',
    byText((name) => name.normalize('NFC')),
  ),
  comparing(
    'NFC and lower case',
    byText((name) => name.normalize('NFC').toLowerCase()),
  ),
  comparing(
    'NFKC and lower case',
    byText((name) => name.normalize('NFKC').toLowerCase().replaceAll(/\s/gu, '')),
  ),
  comparing(
    'the canonical id alone',
    byPart(({ canonical_id: id }) => [id, id, id]),
  ),
  comparing(
    'the skeleton of the canonical id alone',
    byPart(({ canonical_id: id, skeletons: [a = ''] }) => [id, a, id]),
  ),
  comparing(
    'the skeleton as written alone',
    byPart(({ canonical_id: id, skeletons: [, b = ''] }) => [id, id, b]),
  ),
  comparing('zero-width characters as letters', ofChanged(/[\u034f\u200b-\u200d\u2060\ufeff]/gu)),
  comparing('bidi controls as letters', ofChanged(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu)),
  comparing('tags and selectors as letters', ofChanged(/[\ufe00-\ufe0f\u{e0000}-\u{e0fff}]/gu)),
  comparing('hyphens as letters', ofChanged(/[\u2010-\u2015\u2212]/gu)),
  comparing('combining marks as letters', ofChanged(/\p{M}/gu)),
  comparing('wide letters as others', ofChanged(/[\uff21-\uff5a]/gu)),
  comparing(
    'everybody as one person',
    byText(() => 'q'),
  ),
  comparing('case plus look-alike as another name', (name) => {
    const person = realPerson(name);
    return person === null ? null : { ...person, looks: [person.canonical_id] };
  }),
  { ...REAL, name: 'suspensions by the text of a name', suspends: () => null },
  { ...REAL, name: 'votes by the text of a name', votes: byText((name) => name) },
  { ...REAL, name: 'tokens without regard to others', mints: isMinted },
];

function isMinted(actor: string): boolean {
  try {
    return mintToken({ ...GRANT, actor }).record.actor === actor;
  } catch {
    return false;
  }
}
