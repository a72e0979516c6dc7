// Verifies the receipt of a verification (S3-24, S3-28). The platform issues receipts and accepts only its own. Anyone
// who receives a receipt later can compare it with the command and the output.

import { isJsonObject, canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { VerificationReceipt } from '../contract/session.js';
import { isConforming } from '../../../core/contract/validators.js';
import { omitUndefined } from '../../../core/omit-undefined.js';

/** What a receipt is compared with. An omitted member is not checked. */
export interface ReceiptSubject {
  /** The arguments of the command, the program first. */
  readonly command?: readonly string[];
  readonly step_id?: string;
  readonly exit_code?: number;
  /** The output of the command, both streams in the order of arrival. */
  readonly output?: string | Uint8Array;
  /** Another copy of the receipt, from a ledger. */
  readonly receipt?: VerificationReceipt;
}

/**
 * The verdict on a receipt: `valid`, or which of its members are missing, malformed or inconsistent with the subject.
 */
export interface ReceiptVerdict {
  readonly valid: boolean;
  readonly differing: readonly (keyof VerificationReceipt | 'form')[];
}

export const RECEIPT_FIELDS = Object.keys(VerificationReceipt.properties) as readonly (keyof VerificationReceipt)[];

/** The hash that identifies a command in a receipt: SHA-256 of the canonical JSON of its arguments. */
export const commandHash = (command: readonly string[]): string => sha256(canonicalJson([...command]));

/**
 * Compares a receipt with its subject. It reads no ledger and no key. Only a copy from a verified ledger
 * (`subject.receipt`) shows that the platform issued the receipt.
 */
export function verifyReceipt(given: unknown, subject: ReceiptSubject): ReceiptVerdict {
  if (!isReceipt(given)) return { valid: false, differing: ['form'] };
  const { command, step_id, exit_code, output, receipt } = subject;
  const expected: Partial<VerificationReceipt> = {
    ...(command === undefined ? {} : { command_hash: commandHash(command) }),
    ...omitUndefined({ step_id, exit_code }),
    ...(output === undefined ? {} : { output_digest: sha256(output) }),
  };
  // If the copy contradicts the rest of the subject, no receipt matches both.
  const differing = RECEIPT_FIELDS.filter(
    (name) =>
      (expected[name] !== undefined && given[name] !== expected[name]) ||
      (receipt !== undefined && given[name] !== receipt[name]),
  );
  return { valid: differing.length === 0, differing };
}

const isReceipt = (value: unknown): value is VerificationReceipt =>
  isJsonObject(value) && isConforming(VerificationReceipt, value);
