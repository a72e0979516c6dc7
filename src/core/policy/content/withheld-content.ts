// C84: content that a lane withholds leaves the platform only if that lane permits it (`exports_content: true`) and
// approvers have approved the export. The platform determines as a fact which lanes of the case withhold content.

import { approvalRuleFor } from '../approval-decider.js';
import type { Policy } from '../policy.js';
import type { PrivilegedRequest } from '../privileged-request.js';
import type { RuleId } from '../verdict.js';

/** The export would contain content that a lane withholds and does not permit in exports. */
export const WITHHELD_CONTENT = 'withheld_content';
/**
 * The export would contain withheld content, and every lane that withholds any of it permits it in approved exports.
 */
export const EXPORTABLE_CONTENT = 'exportable_withheld_content';

/**
 * The artifact flags of an export. `lanes` maps each withholding lane of its case to whether it permits its content in
 * exports.
 */
export function withheldFlags(lanes: ReadonlyMap<string, boolean>): readonly string[] {
  if (lanes.size === 0) return [];
  return [[...lanes.values()].every((exports) => exports) ? EXPORTABLE_CONTENT : WITHHELD_CONTENT];
}

/**
 * Whether some lane of a policy withholds content. Content that belongs to no single lane is then withheld in its
 * trees.
 */
export const hasWithholdingLane = ({ lanes }: Pick<Policy, 'lanes'>): boolean =>
  [...lanes.values()].some(({ withholds_content }) => withholds_content === true);

/** An export without a required approval has no approval. */
export function findBrokenExportRule(
  { destination, artifact_flags }: PrivilegedRequest,
  { approvals }: Policy,
): RuleId | null {
  if (destination !== 'outside') return null;
  if (artifact_flags.includes(WITHHELD_CONTENT)) return 'export.content_withheld';
  if (!artifact_flags.includes(EXPORTABLE_CONTENT)) return null;
  return approvalRuleFor(approvals, 'export') === undefined ? 'export.not_approved' : null;
}
