// Keeps free text out of the ledger's entries (S4-62, C90). Entries outlive the erasure of a case, so they hold codes,
// hashes and identifiers only; texts of people and agents are stored in artifacts of the case.

import { sha256 } from './hash.js';

/** The recorded reasons of a cancellation. A caller's own words are a note, recorded as an artifact. */
export const CANCEL_REASONS = [
  'by_caller', // the caller gave its own reason
  'operator',
  'shutdown',
  'timeout',
  'no_longer_needed',
  'superseded',
  'abandoned', // the tree could not be started as a whole
  'interrupted', // the process that the run belonged to is gone
  'idle',
  'parent_ended',
  'child_failed',
  'unsafe_client', // the coding agent could act without asking
  // Why the platform's agent loop stopped an agent.
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

/** The code of a reason: the reason itself if it is a code. */
export const toCancelReason = (reason: string): CancelReason =>
  CANCEL_REASONS.find((known) => known === reason) ?? 'by_caller';

/** A name that callers and policies choose, in a form that an entry may hold: bounded, and not free text. */
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,119}$/;
export const isIdentifier = (text: string): boolean => IDENTIFIER.test(text);

/** Prefix of a recorded hash that replaces a text which an entry may not hold. */
export const HASHED_PREFIX = 'sha256:';

/** The form in which an entry names a text: its SHA-256. */
export const hashText = (text: string): string => `${HASHED_PREFIX}${sha256(text)}`;

/**
 * Scope values that are not identifiers are recorded as hashes. A blank value stays blank and is rejected as missing.
 */
export function toRecordedScopeValue(value: string): string {
  if (value.trim() === '') return '';
  return isIdentifier(value) ? value : hashText(value);
}
