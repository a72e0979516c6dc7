import type { Label } from '../contract/policy/labels.js';
import type { WriteMode } from '../contract/policy/lanes.js';
import type { RuleId } from './verdict.js';

/** One privileged act as the policy sees it. Facts that the platform gathered; nothing in it is an agent's word. */
export interface PrivilegedRequest {
  readonly tool: string | null;
  readonly write: { readonly table: string; readonly mode: WriteMode } | null;
  /** The table whose records are read. */
  readonly read: string | null;
  /** The case that the target belongs to; null for a target that belongs to none. */
  readonly target_case_id: string | null;
  readonly destination: 'platform' | 'outside';
  readonly plane: 'case' | 'shared';
  /** What the artifacts that are carried over are (`artifactFlags`), and `embedded_text` for text without one. */
  readonly artifact_flags: readonly string[];
  /** What it names does not exist, or not so: the rule that says it; null for what is registered. */
  readonly unregistered: RuleId | null;
  /** Whether it is what a promotion run was approved for: the run's own act, or its db_write child's. */
  readonly promotes: boolean;
  /** Everything that the run has read before (information flow). */
  readonly label: Label;
}
