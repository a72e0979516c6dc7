// Events of coding agents that get another answer than that of the gate: the client denies the call, and nothing is
// recorded of it. The session is not known, because the body of such a request may be unread.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { CLIENTS, type UndecidedReason } from '../hook-event.js';
import type { CountFiles } from '../gate/count-files.js';
import { pathOf } from '../../../interfaces/service/request-guard.js';

const HOOKS = '/api/v1/hooks/';

/** Counts a request for a hook when its response ends, unless the gate has answered it. */
export function countHookDenial(
  { method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>,
  response: ServerResponse,
  counts: Pick<CountFiles, 'add'> | undefined,
): void {
  // A server of the caller may add a prefix.
  const at = url.indexOf(HOOKS);
  if (counts === undefined || at < 0 || method !== 'POST') return;
  const name = pathOf(url).slice(at + HOOKS.length);
  const client = CLIENTS.find((one) => one === name);
  if (client === undefined) return;
  response.once('close', () => {
    if (response.statusCode !== 200 || !response.writableFinished)
      counts.add(client, null, reasonOf(response.statusCode));
  });
}

function reasonOf(status: number): UndecidedReason {
  if (status === 413) return 'too_long';
  if (status === 415 || status === 422) return 'unreadable';
  return status === 401 || status === 403 ? 'refused' : 'no_service';
}
