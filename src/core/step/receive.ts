import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Policy } from '../policy/policy.js';

/** Fatal for invalid UTF-8. It keeps a byte order mark, so that PARSE can reject it (C12). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** C80: rejects a payload over the limit, whether its bytes are available or not. */
export const TOO_LARGE: CheckedValue<never> = rejectWith('PAYLOAD_TOO_LARGE', 'payload.bytes_max');

/**
 * RECEIVE: decodes the raw bytes of one proposal, which are attacker-controlled and stay unchanged. It checks the size
 * before it decodes anything (C11). A payload of white space counts as empty (C13).
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

/** `trim` removes a byte order mark as white space, but PARSE must reject it. */
const isBlank = (text: string): boolean => text.trim() === '' && !text.includes('\ufeff');
