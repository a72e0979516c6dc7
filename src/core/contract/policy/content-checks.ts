// How a lane checks the text that a promotion carries over (S4-73): permitted findings and search settings.

import Type, { type Static } from 'typebox';
import { PolicyName } from './policy-header.js';
import { closed, OneOf } from '../shapes.js';

/** What the platform detects in a record before it becomes shared knowledge. */
export const FINDING_KINDS = [
  'person_name', // a name of the case: of one of its entities, or a proper name in its texts
  'birth_date',
  'email',
  'phone',
  'account_number',
  'document_number', // of a passport, licence or policy, or a number in the texts of the case
  'case_reference', // the id of the case, or of its matter or client session
  'privilege_mark', // the words that mark privileged documents
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The field `content_checks` of a lane. Every member is optional. */
export const ContentChecks = Type.Object(
  {
    /** Findings that do not count in this lane. Default: none. */
    permits: Type.Optional(Type.Array(OneOf(FINDING_KINDS), { maxItems: FINDING_KINDS.length })),
    /** The number of consecutive words of a case text that count as a passage. Default: 7. */
    passage_words: Type.Optional(Type.Integer({ minimum: 4, maximum: 8 })),
    /** Countries (ISO 3166-1) whose phone numbers are found without a country prefix. Default: US. */
    countries: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z]{2}$' }), { maxItems: 16 })),
    /** Tables of the case whose records hold names, each with its name columns. Default: `entities`. */
    names: Type.Optional(Type.Record(PolicyName, Type.Array(PolicyName, { maxItems: 32 }), { maxProperties: 32 })),
    /** Proper names in the case that are not a client's: of courts, statutes, companies. */
    known_names: Type.Optional(Type.Array(Type.String({ minLength: 2, maxLength: 80 }), { maxItems: 256 })),
  },
  closed,
);
export type ContentChecks = Static<typeof ContentChecks>;

/** The default number of words of a passage. */
export const PASSAGE_WORDS = 7;
export const COUNTRIES: readonly string[] = ['US'];
