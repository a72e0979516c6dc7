// The origin of data. A label only grows: a run that reads adds the labels of what it reads, and everything read
// decides what the run may write or export (`core/policy/authorize-run.ts`). This file must not import the catalogue or
// the lanes: a lane names the labels that it refuses.

import Type, { type Static } from 'typebox';
import { CaseId, closed, OneOf } from '../shapes.js';

/** Sensitive content that a record or tool result may have (`artifact_ref.confidentiality`). */
export const CONFIDENTIALITY_FLAGS = ['contains_pii', 'contains_phi', 'contains_privileged'] as const;
export type ConfidentialityFlag = (typeof CONFIDENTIALITY_FLAGS)[number];

/** The number of cases that a label names; a label with more cases stops naming them. */
export const LABEL_CASES_MAX = 64;

/** Cases and flags are sorted by code units and unique: equal labels are equal text. */
export const Label = Type.Object(
  {
    /** Empty if there are too many to name. */
    cases: Type.Array(CaseId, { maxItems: LABEL_CASES_MAX }),
    flags: Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length }),
    /** True if the data may come from any case: from more cases than a label names, or from an unnamed one. */
    many: Type.Boolean(),
  },
  closed,
);
export type Label = Static<typeof Label>;

/** Labels for which a lane can refuse to write or export. */
export const LABEL_REFUSALS = ['other_case', 'any_case', ...CONFIDENTIALITY_FLAGS] as const;
export type LabelRefusal = (typeof LABEL_REFUSALS)[number];

/** The field `refuses_labels` of a lane. Absent: the lane refuses no labels. */
export const LabelRefusals = Type.Array(OneOf(LABEL_REFUSALS), { maxItems: LABEL_REFUSALS.length });
