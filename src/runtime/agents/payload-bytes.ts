import { usageError } from '../../core/errors.js';

/**
 * The largest accepted payload. Policy limits are far lower; a payload that policy rejects is stored, in whole or as a
 * prefix.
 */
export const PAYLOAD_BYTES_CEILING = 33_554_432;

/**
 * The bytes of a raw payload, exactly as they are recorded (S0-17). A string with a lone surrogate has no UTF-8 form:
 * its surrogates become three bytes each, so that RECEIVE sees, and rejects, exactly what was sent.
 * @throws UsageError for more than 32 MiB, and for anything else than text and bytes
 */
export function payloadBytes(raw: string | Uint8Array): Uint8Array {
  const given: unknown = raw;
  if (typeof given !== 'string' && !(given instanceof Uint8Array)) throw usageError('payload: a text or bytes');
  const bytes =
    typeof raw !== 'string' ? Uint8Array.from(raw) : raw.isWellFormed() ? Buffer.from(raw) : encodeWtf8(raw);
  if (bytes.byteLength > PAYLOAD_BYTES_CEILING) {
    throw usageError(`a payload has at most ${PAYLOAD_BYTES_CEILING} bytes`);
  }
  return bytes;
}

function encodeWtf8(text: string): Uint8Array {
  const parts = Array.from(text, (char) => {
    if (char.isWellFormed()) return Buffer.from(char);
    const unit = char.charCodeAt(0);
    return Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)]);
  });
  return Buffer.concat(parts);
}
