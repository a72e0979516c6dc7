// Information flow (S4-84, S4-85): each step of a flow may be allowed by itself, and the flow must not be. Who reads in
// case A and then writes shared knowledge touches no foreign target in either step; only what the run has read tells.
//
// Labels are ordered: one is below another that adds to it. A join is the least label above both, so it does not matter
// in which order or how often things are read, and a label above one that is refused is refused as well.

import type { ArtifactRef } from '../contract/artifact-ref.js';
import {
  CONFIDENTIALITY_FLAGS,
  LABEL_CASES_MAX,
  type ConfidentialityFlag,
  type Label,
  type LabelRefusal,
} from '../contract/policy/labels.js';

export type LabelRuleId = `label.${LabelRefusal}` | 'platform.label_other_case';

/** What somebody is about to do with all that has been read. Facts of the platform, as in `PrivilegedRequest`. */
export interface LabelledOperation {
  readonly write: boolean;
  /** The target is shared knowledge. Reading there carries nothing anywhere. */
  readonly shared: boolean;
  /** Something leaves the platform. */
  readonly outside: boolean;
}

/** The label of what comes from nowhere in particular: one object for all, so that most joins are one comparison. */
export const EMPTY_LABEL: Label = { cases: [], flags: [], many: false };
Object.freeze(EMPTY_LABEL.cases);
Object.freeze(EMPTY_LABEL.flags);
Object.freeze(EMPTY_LABEL);

/** The label of something that belongs to this case, or to none, and carries these flags. */
export function createLabel(case_id: string | null, flags: readonly ConfidentialityFlag[]): Label {
  if (case_id === null && flags.length === 0) return EMPTY_LABEL;
  return { cases: case_id === null ? [] : [case_id], flags: union(flags, []), many: false };
}

/** The label of an artifact. One that is said to belong to a case, but not to which, may belong to any. */
export function labelOfRef(ref: ArtifactRef): Label {
  const flags = CONFIDENTIALITY_FLAGS.filter((flag) => ref.confidentiality?.[flag] === true);
  if (ref.scope === 'case' && ref.case_id === undefined) return { cases: [], flags: union(flags, []), many: true };
  return createLabel(ref.case_id ?? null, flags);
}

/**
 * The label of both together; of more than 64 cases it says only that they are many, and keeps the flags.
 * @returns `a` itself if `b` adds nothing to it, else `b` itself if it holds all of `a`
 */
export function joinLabels(a: Label, b: Label): Label {
  if (isAtOrAbove(a, b)) return a;
  if (isAtOrAbove(b, a)) return b;
  const cases = a.many || b.many ? [] : union(a.cases, b.cases);
  const many = a.many || b.many || cases.length > LABEL_CASES_MAX;
  return { cases: many ? [] : cases, flags: union(a.flags, b.flags), many };
}

/**
 * May somebody whose run has read all this do so? What a lane refuses concerns writes and what leaves the platform.
 *
 * Whatever the lane says, nothing of another case is written where all cases read, or leaves the platform. S4-84 and
 * S4-85 judge the target of one act; a target that belongs to no case is nobody's, and so would be the way from one
 * case into every other. A run without a case has none of its own: every case is another's.
 *
 * @returns the rule that is broken first, or null. A larger label never breaks fewer.
 */
export function findBrokenLabelRule(
  label: Label,
  run_case_id: string | null,
  refuses: readonly LabelRefusal[],
  operation: LabelledOperation,
): LabelRuleId | null {
  if (!operation.write && !operation.outside) return null;
  const refused = refuses.find((refusal) => hasRefusedLabel(label, run_case_id, refusal));
  if (refused !== undefined) return `label.${refused}`;
  const leavesCase = operation.outside || operation.shared;
  return leavesCase && hasRefusedLabel(label, run_case_id, 'other_case') ? 'platform.label_other_case' : null;
}

function hasRefusedLabel(label: Label, run_case_id: string | null, refusal: LabelRefusal): boolean {
  switch (refusal) {
    case 'other_case':
      return label.many || label.cases.some((case_id) => case_id !== run_case_id);
    case 'any_case':
      return label.many || label.cases.length > 0;
    case 'contains_pii':
    case 'contains_phi':
    case 'contains_privileged':
      return label.flags.includes(refusal);
  }
}

/** Is `label` at or above `other`? */
const isAtOrAbove = (label: Label, other: Label): boolean =>
  label === other ||
  ((label.many || (!other.many && other.cases.every((case_id) => label.cases.includes(case_id)))) &&
    other.flags.every((flag) => label.flags.includes(flag)));

/** Each once, sorted by code units: no locale may decide what a ledger says. */
const union = <T extends string>(some: readonly T[], more: readonly T[]): T[] =>
  [...new Set([...some, ...more])].sort();
