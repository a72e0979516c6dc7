import type { WriteMode } from '../contract/lanes.js';

/** One privileged act as the policy sees it. Facts that the platform gathered; nothing in it is an agent's word. */
export interface PrivilegedRequest {
  readonly tool: string | null;
  readonly write: { readonly table: string; readonly mode: WriteMode } | null;
  /** The case that the target belongs to; null for a target that belongs to none. */
  readonly target_case_id: string | null;
  readonly destination: 'platform' | 'outside';
  readonly plane: 'case' | 'shared';
  /** What the artifacts that are carried over are (`artifactFlags`), and `embedded_text` for text without one. */
  readonly artifact_flags: readonly string[];
}
