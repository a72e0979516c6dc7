import { customAlphabet } from 'nanoid';
import type { Ids } from '../engine/ports/ids.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Random ids (D11): 21 characters from an alphabet of 62 have 125 bits. */
export function nanoidIds(): Ids {
  const draw = customAlphabet(ALPHABET, 21);
  return { draw: (prefix) => `${prefix}${draw()}` };
}
