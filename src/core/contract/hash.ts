import { hash } from 'node:crypto';

/**
 * SHA-256 of bytes, or of the UTF-8 form of a string.
 * @returns 64 lower-case hex digits
 */
export const sha256 = (bytes: string | Uint8Array): string => hash('sha256', bytes, 'hex');
