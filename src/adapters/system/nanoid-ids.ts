import { customAlphabet } from 'nanoid';
import type { Ids } from '../../ports/ids.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Ids from the system's randomness (D11): 21 characters of 62 hold 125 bits. */
export function nanoidIds(): Ids {
  const draw = customAlphabet(ALPHABET, 21);
  return { draw: (prefix) => `${prefix}${draw()}` };
}
