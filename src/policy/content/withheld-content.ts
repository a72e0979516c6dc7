// C84: content that a lane withholds leaves the platform only where that lane says so (`exports_content: true`), and
// people have approved the export. Which lanes of the case withhold what, is a fact of the platform.

import { WITHHELD_EXPORTS } from '../../contract/policy/flags.js';
import { approvalRuleFor } from '../approval/approval.js';
import type { Policy } from '../policy.js';
import type { PrivilegedRequest } from '../privileged-request.js';
import type { RuleId } from '../verdict.js';

/** Of what an export would hold: a lane withholds some of it, and does not let an export hold it. */
export const WITHHELD_CONTENT = 'withheld_content';
/** The same, where every lane that withholds any of it lets an approved export hold it. */
export const EXPORTABLE_CONTENT = 'exportable_withheld_content';

/** The artifact flags of an export, by whether each withholding lane of its case lets exports hold its content. */
export function withheldFlags(lanes: ReadonlyMap<string, boolean>): readonly string[] {
  if (lanes.size === 0) return [];
  return [[...lanes.values()].every((exports) => exports) ? EXPORTABLE_CONTENT : WITHHELD_CONTENT];
}

/** Whether some lane of a policy withholds content: what belongs to no lane alone is withheld in its trees then. */
export const hasWithholdingLane = ({ lanes }: Pick<Policy, 'lanes'>): boolean =>
  [...lanes.values()].some(({ withholds_content }) => withholds_content === true);

/** An export without a required approval has no approval. */
export function findBrokenExportRule(
  { destination, artifact_flags }: PrivilegedRequest,
  { approvals, flags }: Policy,
): RuleId | null {
  if (destination !== 'outside' || !flags.has(WITHHELD_EXPORTS)) return null;
  if (artifact_flags.includes(WITHHELD_CONTENT)) return 'export.content_withheld';
  if (!artifact_flags.includes(EXPORTABLE_CONTENT)) return null;
  return approvalRuleFor(approvals, 'export') === undefined ? 'export.not_approved' : null;
}
