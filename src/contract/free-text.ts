// Free text and the ledger's entries (S4-62, C90). Entries outlive the erasure of a case, so they hold codes, hashes
// and identifiers; what people and agents write stands in artifacts of the case.

import { sha256 } from './hash.js';

/** Why a run was cancelled, as it is recorded. What a caller says in other words is a note, recorded as an artifact. */
export const CANCEL_REASONS = [
  'by_caller', // the caller gave a reason of its own
  'operator',
  'shutdown',
  'timeout',
  'no_longer_needed',
  'superseded',
  'abandoned', // its tree could not be started as a whole
  'interrupted', // the process that it belonged to is gone
  'idle',
  'parent_ended',
  'child_failed',
  // Why the platform's own loop has stopped an agent.
  'max_steps',
  'max_denials',
  'max_invalid',
  'max_tokens',
  'tokens_unreported',
  'turn_timeout',
  'agent_failed',
  'aborted',
] as const;
export type CancelReason = (typeof CANCEL_REASONS)[number];

/** The code of a reason: itself where it is one. */
export const toCancelReason = (reason: string): CancelReason =>
  CANCEL_REASONS.find((known) => known === reason) ?? 'by_caller';

/** A name that callers and policies give to things, so that it can stand in an entry: bounded, and no free text. */
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,119}$/;
export const isIdentifier = (text: string): boolean => IDENTIFIER.test(text);

/** What the name of a text begins with, where the text itself may not stand in an entry. */
export const HASHED_PREFIX = 'sha256:';

/** A text as an entry may name it: its SHA-256. */
export const hashText = (text: string): string => `${HASHED_PREFIX}${sha256(text)}`;

/** Scope values that are no identifiers are recorded as hashes; a blank one stays blank, and is refused as missing. */
export function toRecordedScopeValue(value: string): string {
  if (value.trim() === '') return '';
  return isIdentifier(value) ? value : hashText(value);
}
