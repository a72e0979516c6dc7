// The receipt of a verification (S3-24, S3-28): how it is held against what it speaks of. The platform makes receipts,
// and takes back only its own; whoever is shown one later can hold it against the command and the output.

import { canonicalJson } from '../contract/canonical-json.js';
import { sha256 } from '../contract/hash.js';
import { isJsonObject } from '../contract/json.js';
import { VerificationReceipt } from '../contract/session/session.js';
import { isConforming } from '../contract/validators.js';

/** What a receipt is held against. What is left out is not checked. */
export interface ReceiptSubject {
  /** The arguments of the command, the program first. */
  readonly command?: readonly string[];
  readonly step_id?: string;
  readonly exit_code?: number;
  /** What the command printed, both streams in the order in which they came. */
  readonly output?: string | Uint8Array;
  /** Another copy of the receipt, as a ledger has it. */
  readonly receipt?: VerificationReceipt;
}

/** The verdict on a receipt: `valid`, or which of its members are missing, malformed or about something else. */
export interface ReceiptVerdict {
  readonly valid: boolean;
  readonly differing: readonly (keyof VerificationReceipt | 'form')[];
}

export const RECEIPT_FIELDS = Object.keys(VerificationReceipt.properties) as readonly (keyof VerificationReceipt)[];

/** The SHA-256 by which a receipt names a command: of the canonical JSON of its arguments. */
export const commandHash = (command: readonly string[]): string => sha256(canonicalJson([...command]));

/**
 * Checks a receipt against what it is about. It reads no ledger and no key: that the platform made the receipt shows
 * only a copy from a verified ledger (`subject.receipt`).
 */
export function verifyReceipt(given: unknown, subject: ReceiptSubject): ReceiptVerdict {
  if (!isReceipt(given)) return { valid: false, differing: ['form'] };
  const { command, step_id, exit_code, output, receipt } = subject;
  const expected: Partial<VerificationReceipt> = {
    ...(command === undefined ? {} : { command_hash: commandHash(command) }),
    ...(step_id === undefined ? {} : { step_id }),
    ...(exit_code === undefined ? {} : { exit_code }),
    ...(output === undefined ? {} : { output_digest: sha256(output) }),
  };
  // Where the copy contradicts the rest of the subject, no receipt conforms to both.
  const differing = RECEIPT_FIELDS.filter(
    (name) =>
      (expected[name] !== undefined && given[name] !== expected[name]) ||
      (receipt !== undefined && given[name] !== receipt[name]),
  );
  return { valid: differing.length === 0, differing };
}

const isReceipt = (value: unknown): value is VerificationReceipt =>
  isJsonObject(value) && isConforming(VerificationReceipt, value);
