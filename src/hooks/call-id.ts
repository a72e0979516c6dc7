// The ids of proposals that are made of calls of a client. The same call has the same id in every process, so a
// repeated event makes no second step.

import { canonicalJson } from '../contract/canonical-json.js';
import { nameUuid } from '../contract/name-uuid.js';
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

/** The id of the proposal for a call: a UUID of version 5. */
export const proposalIdOf = ({ client, session, agent, call_id, attempt }: CallKey): string =>
  nameUuid(canonicalJson([client, session, agent, call_id, attempt]));
