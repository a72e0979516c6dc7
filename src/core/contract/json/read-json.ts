import type { Json } from '../json.js';
import { scanJson } from './scan-json.js';

/** The nesting that a text from outside may have. */
export const OUTSIDE_DEPTH_MAX = 64;

/**
 * Reads JSON that something else has written: a service, a client, a file. A member that is there twice makes the text
 * invalid, because two readers of it could see two values.
 * @returns undefined for any text that is not exactly one strict value in UTF-8
 */
export function readJson(given: Uint8Array | string, depth_max = OUTSIDE_DEPTH_MAX): Json | undefined {
  const text = typeof given === 'string' ? given : decode(given);
  const scanned = text === undefined ? undefined : scanJson(text, depth_max);
  return scanned?.ok === true ? scanned.value : undefined;
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
