// Information flow (S4-84, S4-85): every step of a flow can be allowed while the flow must not be. A run that reads
// case A and then writes shared knowledge uses no target of another case in either step. Only its label, the record of
// what it has read, shows the flow.
//
// Labels form a lattice: a label is above another if it contains everything in it. A join is the least label above
// both, so the order and number of reads do not matter. If a label is refused, every label above it is refused.

import type { ArtifactRef } from '../contract/artifact-ref.js';
import {
  CONFIDENTIALITY_FLAGS,
  LABEL_CASES_MAX,
  type ConfidentialityFlag,
  type Label,
  type LabelRefusal,
} from '../contract/policy/labels.js';

export type LabelRuleId = `label.${LabelRefusal}` | 'platform.label_other_case';

/** The operation that a run with a label requests. The platform gathers these facts, as in `PrivilegedRequest`. */
export interface LabelledOperation {
  readonly write: boolean;
  /** Whether the target is shared knowledge. A read of shared knowledge discloses nothing. */
  readonly shared: boolean;
  /** Whether data leaves the platform. */
  readonly outside: boolean;
}

/** The label without cases and flags. It is one shared object, so most joins need only one comparison. */
export const EMPTY_LABEL: Label = { cases: [], flags: [], many: false };
Object.freeze(EMPTY_LABEL.cases);
Object.freeze(EMPTY_LABEL.flags);
Object.freeze(EMPTY_LABEL);

/** Returns the label of data that belongs to this case, or to none if null, and has these flags. */
export function createLabel(case_id: string | null, flags: readonly ConfidentialityFlag[]): Label {
  if (case_id === null && flags.length === 0) return EMPTY_LABEL;
  return { cases: case_id === null ? [] : [case_id], flags: union(flags, []), many: false };
}

/** Returns the label of an artifact. An artifact with the scope `case` but no case id can belong to any case. */
export function labelOfRef(ref: ArtifactRef): Label {
  const flags = CONFIDENTIALITY_FLAGS.filter((flag) => ref.confidentiality?.[flag] === true);
  if (ref.scope === 'case' && ref.case_id === undefined) return { cases: [], flags: union(flags, []), many: true };
  return createLabel(ref.case_id ?? null, flags);
}

/**
 * Returns the least label above both. With more than 64 cases it contains `many` in place of the case ids.
 * @returns `a` itself if `b` adds nothing to it, or else `b` itself if `a` adds nothing to `b`
 */
export function joinLabels(a: Label, b: Label): Label {
  if (isAtOrAbove(a, b)) return a;
  if (isAtOrAbove(b, a)) return b;
  const cases = a.many || b.many ? [] : union(a.cases, b.cases);
  const many = a.many || b.many || cases.length > LABEL_CASES_MAX;
  return { cases: many ? [] : cases, flags: union(a.flags, b.flags), many };
}

/**
 * Decides whether a run with this label may execute the operation. The refusals of a lane apply to writes, and to data
 * that leaves the platform.
 *
 * In every lane, data of another case must not reach shared knowledge and must not leave the platform. S4-84 and S4-85
 * check the target of one operation only. A shared target belongs to no case, so without this rule it would connect
 * every case with every other. For a run without a case, every case is another case.
 *
 * @returns the first broken rule, or null. A label above this one breaks at least the same rules.
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

/** Whether `label` equals `other` or is above it. */
const isAtOrAbove = (label: Label, other: Label): boolean =>
  label === other ||
  ((label.many || (!other.many && other.cases.every((case_id) => label.cases.includes(case_id)))) &&
    other.flags.every((flag) => label.flags.includes(flag)));

/** Each element once, sorted by code units, so that recorded bytes do not depend on a locale. */
const union = <T extends string>(some: readonly T[], more: readonly T[]): T[] =>
  [...new Set([...some, ...more])].sort();
