// What is known of where something comes from. A label only ever grows on its way: whoever reads takes on what the
// thing carries, and what may be written or handed out is decided by all that was read (`policy/labels.ts`).
//
// Nothing of the catalogue or the lanes may be imported here: a lane names the labels that it refuses.

import Type, { type Static } from 'typebox';
import { CaseId, closed, OneOf } from '../shapes.js';

/** What a record, or what a tool gives, may hold that is not for everybody (`artifact_ref.confidentiality`). */
export const CONFIDENTIALITY_FLAGS = ['contains_pii', 'contains_phi', 'contains_privileged'] as const;
export type ConfidentialityFlag = (typeof CONFIDENTIALITY_FLAGS)[number];

/** A label names so many cases; of one more it says no longer which. */
export const LABEL_CASES_MAX = 64;

/** Cases and flags are sorted by code units, each once: equal labels are equal text. */
export const Label = Type.Object(
  {
    /** Empty where there are too many to name. */
    cases: Type.Array(CaseId, { maxItems: LABEL_CASES_MAX }),
    flags: Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length }),
    /** It may hold any case: more than can be named, or one that nobody named. */
    many: Type.Boolean(),
  },
  closed,
);
export type Label = Static<typeof Label>;

/** What a lane can refuse to write or to hand out. */
export const LABEL_REFUSALS = ['other_case', 'any_case', ...CONFIDENTIALITY_FLAGS] as const;
export type LabelRefusal = (typeof LABEL_REFUSALS)[number];

/** The field `refuses_labels` of a lane. Absent means that the lane refuses nothing of its own. */
export const LabelRefusals = Type.Array(OneOf(LABEL_REFUSALS), { maxItems: LABEL_REFUSALS.length });
