// What a lane asks of the text that a promotion carries over (S4-73): which findings it permits, and what to search by.

import Type, { type Static } from 'typebox';
import { PolicyName } from './policy-header.js';
import { closed, OneOf } from '../shapes.js';

/** What the platform detects in a record that becomes shared knowledge. */
export const FINDING_KINDS = [
  'person_name', // a name of the case: of its entities, or a proper name that stands in its texts
  'birth_date',
  'email',
  'phone',
  'account_number',
  'document_number', // of a passport, licence, policy; or a number that stands in the texts of the case
  'case_reference', // the id of the case, or of its matter or client session
  'privilege_mark', // the words by which privileged documents are marked
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The field `content_checks` of a lane. Every member may be left out. */
export const ContentChecks = Type.Object(
  {
    /** Findings that do not count in this lane. None by default. */
    permits: Type.Optional(Type.Array(OneOf(FINDING_KINDS), { maxItems: FINDING_KINDS.length })),
    /** So many consecutive words of a text of the case are a passage. 7 by default. */
    passage_words: Type.Optional(Type.Integer({ minimum: 4, maximum: 8 })),
    /** Countries (ISO 3166-1) whose phone numbers are found without the prefix of the country. US by default. */
    countries: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z]{2}$' }), { maxItems: 16 })),
    /** Tables of the case whose records hold names, each with the columns that do. `entities` by default. */
    names: Type.Optional(Type.Record(PolicyName, Type.Array(PolicyName, { maxItems: 32 }), { maxProperties: 32 })),
    /** Proper names that are no client's, though they stand in the case: of courts, statutes, companies. */
    known_names: Type.Optional(Type.Array(Type.String({ minLength: 2, maxLength: 80 }), { maxItems: 256 })),
  },
  closed,
);
export type ContentChecks = Static<typeof ContentChecks>;

/** Words of one passage, where the lane does not say. */
export const PASSAGE_WORDS = 7;
export const COUNTRIES: readonly string[] = ['US'];
