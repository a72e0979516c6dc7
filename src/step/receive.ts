import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Policy } from '../policy/policy.js';

/** Fatal, and it keeps a byte order mark: PARSE must see it, so that it can refuse it (C12). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** C80: the refusal of a payload over the limit, whether it is at hand or not. */
export const TOO_LARGE: CheckedValue<never> = rejectWith('PAYLOAD_TOO_LARGE', 'payload.bytes_max');

/**
 * RECEIVE: takes in the raw bytes of one proposal, which are attacker-controlled and are not changed.
 * The size is judged before anything is decoded (C11); white space alone is as empty as nothing at all (C13).
 *
 * @returns the text, or EMPTY_PAYLOAD, PAYLOAD_TOO_LARGE, INVALID_ENCODING
 */
export function receive(payload: Uint8Array, policy: Policy): CheckedValue<string> {
  if (payload.byteLength > policy.limits.payload_bytes_max) return TOO_LARGE;
  const text = decode(payload);
  if (text === null) return rejectWith('INVALID_ENCODING', 'payload.not_utf8');
  return isBlank(text) ? rejectWith('EMPTY_PAYLOAD', 'payload.blank') : passWith(text);
}

function decode(payload: Uint8Array): string | null {
  try {
    return UTF8.decode(payload);
  } catch {
    return null;
  }
}

/** `trim` counts the byte order mark as white space; to us it is the beginning of something that PARSE refuses. */
const isBlank = (text: string): boolean => text.trim() === '' && !text.includes('\ufeff');
