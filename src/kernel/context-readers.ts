// Readers for the parts of a machine's context that other modules need.

import type { ApprovalBook } from '../core/contract/run/approval.js';
import type { Label } from '../core/contract/policy/labels.js';

/** The approval book of a run: an agent run has its own, a mediated run has the one that belongs to its request. */
export function readApprovalBook(memory: unknown): ApprovalBook | null {
  const { approvals, approval } = (memory ?? {}) as {
    readonly approvals?: ApprovalBook;
    readonly approval?: { readonly book: ApprovalBook } | null;
  };
  return approvals ?? approval?.book ?? null;
}

/** The label of everything that an agent has read, from its machine's context; null for any other machine. */
export const readLabel = (memory: unknown): Label | null =>
  ((memory ?? {}) as { readonly label?: Label }).label ?? null;
