// The ids of proposals that are made of calls of a client. The same call has the same id in every process, so a
// repeated event makes no second step. A client's id of a call alone does not identify it: some model services number
// the calls of each answer, and an id that was allowed must not answer for another input.

import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { nameUuid } from '../../runtime/name-uuid.js';
import type { Client, NativeCall } from './hook-event.js';

/** What identifies a call. */
export interface CallKey {
  readonly client: Client;
  readonly session: string;
  readonly agent: string | null;
  /** The digest of the call (`callDigest`). */
  readonly call: string;
  /** From 0: how many calls with this digest came before. */
  readonly number: number;
  /** From 0. Each new request for a call whose approval was pending has the next number. */
  readonly attempt: number;
}

/** The digest of the client's id of a call, of its tool and of its input as the client has given it. */
export const callDigest = ({ call_id, tool, input }: NativeCall): string =>
  sha256(canonicalJson([call_id, tool, input]));

/** The id of the proposal for a call: a UUID of version 5. */
export const proposalIdOf = ({ client, session, agent, call, number, attempt }: CallKey): string =>
  nameUuid(canonicalJson([client, session, agent, call, number, attempt]));
