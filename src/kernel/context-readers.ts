// What others look for in the memories of machines.

import type { ApprovalBook } from '../contract/run/approval.js';
import type { SessionState } from '../session/session-state.js';

/** The book that a run keeps: an agent of its own, a mediated run with the request that it is about. */
export function readApprovalBook(memory: unknown): ApprovalBook | null {
  const { approvals, approval } = (memory ?? {}) as {
    readonly approvals?: ApprovalBook;
    readonly approval?: { readonly book: ApprovalBook } | null;
  };
  return approvals ?? approval?.book ?? null;
}

/** The session that a session's machine keeps, while it lives and as its output. */
export const readSession = (memory: unknown): SessionState | null =>
  ((memory ?? {}) as { readonly session?: SessionState }).session ?? null;
