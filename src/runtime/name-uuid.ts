// Ids that follow from what they identify, so that every process gives the same thing the same id.

import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';

/** The namespace of these ids (RFC 9562, version 5): a random id that never changes. */
const NAMESPACE = Buffer.from('0d2f3a526d0e4c0b9c568f0f6a3f7f1e', 'hex');

/** The UUID of version 5 of a name. */
export function nameUuid(name: string): string {
  const bytes = Buffer.from(hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(name)]), 'hex'), 'hex').subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
