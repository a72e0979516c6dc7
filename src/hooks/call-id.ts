// The ids of proposals that are made of calls of a client. The same call has the same id in every process, so a
// repeated event makes no second step.

import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';
import { canonicalJson } from '../contract/canonical-json.js';
import type { Client } from './hook-event.js';

/** What identifies a call. */
export interface CallKey {
  readonly client: Client;
  readonly session: string;
  readonly agent: string | null;
  /** The client's id of the call, or the one that was issued for it. */
  readonly call_id: string;
  /** From 0. Each new request for a call whose approval was pending has the next number. */
  readonly attempt: number;
}

/** The namespace of these ids (RFC 9562, version 5): a random id that never changes. */
const NAMESPACE = '0d2f3a52-6d0e-4c0b-9c56-8f0f6a3f7f1e';

/** The id of the proposal for a call: a UUID of version 5. */
export function proposalIdOf({ client, session, agent, call_id, attempt }: CallKey): string {
  const name = canonicalJson([client, session, agent, call_id, attempt]);
  const bytes = Buffer.from(
    hash('sha1', Buffer.concat([Buffer.from(NAMESPACE.replaceAll('-', ''), 'hex'), Buffer.from(name)]), 'hex'),
    'hex',
  ).subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
