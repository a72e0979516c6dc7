// The route for hooks of coding agents that send their events by HTTP.

import type { IncomingMessage, ServerResponse } from 'node:http';
import Type from 'typebox';
import { CaseId, closed, Identifier, OneOf } from '../../../core/contract/shapes.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { CLIENTS, type UndecidedReason } from '../hook-event.js';
import { isCallIn, sessionIn, totalOf, CountFiles } from '../client-files/count-files.js';
import { DIALECTS } from '../dialects.js';
import { parseHookEvent } from '../gate/hook-requests.js';
import { UNCHECKED_REASON } from '../gate/hook-reasons.js';
import { RefusalError } from '../../../interfaces/service/problems.js';
import { pathOf } from '../../../interfaces/service/request-guard.js';
import { BinaryBody, route, type Route } from '../../../interfaces/http/routes/route.js';
import { jsonResponse } from '../../../interfaces/http/routes/route-shapes.js';
import { checkTokenCase } from '../../../interfaces/http/routes/run-access.js';
import type { HttpService } from '../../../interfaces/http/http-service.js';

const HookParams = Type.Object({ client: OneOf(CLIENTS) }, closed);
const HookQuery = Type.Object(
  {
    /** The folder of the project on the machine of the service. */
    project: Type.String({ pattern: '^/', maxLength: 4_096 }),
    lane: Type.Optional(Identifier),
    case: Type.Optional(CaseId),
  },
  closed,
);
const AnyObject = Type.Record(Type.String(), Type.Unknown());

const HOOK_PATH = '/api/v1/hooks/{client}';

/** The counts of each service, by its options. */
const COUNTS = new WeakMap<object, CountFiles>();

/** Undefined if the service does not count events. */
function countsOf({ options: { hookCounts } }: Pick<HttpService, 'options'>): CountFiles | undefined {
  if (hookCounts === undefined) return undefined;
  const known = COUNTS.get(hookCounts) ?? new CountFiles(hookCounts.home, hookCounts.environment);
  COUNTS.set(hookCounts, known);
  return known;
}

const HOOKS = '/api/v1/hooks/';

/**
 * Counts a request for a hook when its response ends, unless the gate has answered it: the client denies the call then,
 * and nothing is recorded of it. The session is not known, because the body of such a request may be unread.
 */
function countHookDenial(
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

export const HOOK_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: HOOK_PATH,
    summary: 'Answer one event of a coding agent, in the form of its client: a call that is not allowed is denied',
    rights: ['act'],
    params: HookParams,
    query: HookQuery,
    body: BinaryBody,
    responses: { 200: jsonResponse('The answer in the form of the client; an empty object for none.', AnyObject) },
    observe: (request, response, service) => countHookDenial(request, response, countsOf(service)),
    async handle({ principal, params: { client }, query, body }, service) {
      const { hooks } = service.turnpike;
      const hookCounts = countsOf(service);
      if (hooks === null) throw new RefusalError('NOT_FOUND');
      const case_id = query.case ?? principal.case ?? undefined;
      checkTokenCase(principal, case_id);
      const { actor, person, role } = principal;
      const { lane = 'CODING', project } = query;
      const caller = { actor, role, lane, project, ...omitUndefined({ person, case: case_id }) };
      const text = Buffer.from(body).toString('utf8');
      const event = parseHookEvent(text);
      const session = sessionIn(client, text);
      const counts = session === null ? undefined : hookCounts?.read(client, session);
      const undecided = counts === undefined || totalOf(counts) === 0 ? undefined : counts;
      const result = await hooks.answer(client, event, caller, undefined, undecided);
      const denied = result.unchecked === true ? 'refused' : result.undecided;
      if (denied !== undefined && isCallIn(text)) hookCounts?.add(client, session, denied);
      const dialect = DIALECTS[client];
      if (result.unchecked === true) return { json: dialect.writeFailure(UNCHECKED_REASON, event).body ?? {} };
      if (result.noted === true) hookCounts?.remove(client, session);
      return { json: result.reply.body ?? {} };
    },
  }),
];
