import type { JsonObject } from '../contract/json.js';
import type { Label } from '../contract/policy/labels.js';
import type { WriteMode } from '../contract/policy/lanes.js';
import type { RuleId } from './verdict.js';

/** One privileged request as the policy sees it. The platform gathers every member; the agent claims none of them. */
export interface PrivilegedRequest {
  readonly tool: string | null;
  /** The input of CALL_TOOL, which call rules read. Absent for other actions. */
  readonly input?: JsonObject;
  readonly write: { readonly table: string; readonly mode: WriteMode } | null;
  /** The table whose records are read. */
  readonly read: string | null;
  /** The case that the target belongs to; null for a target that belongs to none. */
  readonly target_case_id: string | null;
  readonly destination: 'platform' | 'outside';
  readonly plane: 'case' | 'shared';
  /** Kinds and flags of the transferred artifacts (`artifactFlags`), and `embedded_text` for text outside artifacts. */
  readonly artifact_flags: readonly string[];
  /** The rule that denies an unregistered tool, table or write mode; null if everything is registered. */
  readonly unregistered: RuleId | null;
  /** Whether this is the approved write of a promotion run, requested by the run itself or by its db_write child. */
  readonly promotes: boolean;
  /** Set for an act of an operator: if no lane lists its tool, role and lane do not limit it. */
  readonly operator?: true;
  /** Everything that the run has read before (information flow). */
  readonly label: Label;
}
