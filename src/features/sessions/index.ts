// `turnpike/sessions`: the types of sessions, and the check of verification receipts.

export type { SessionAnswer, SessionData } from './contract/session-answer.js';
export type { VerificationReceipt } from './contract/session.js';
export type { SessionSpec } from './contract/session-spec.js';
export type { ReviewOrder, Review } from './checks/run-review.js';
export type { ReviewCallback } from './checks/run-review.js';
export type {
  NextRequest,
  SessionCaller,
  Sessions,
  SessionSummary,
  StartSessionOptions,
  TaskDetails,
} from './sessions.js';
export { commandHash, verifyReceipt, type ReceiptSubject, type ReceiptVerdict } from './rules/receipt.js';
