// The route for hooks of coding agents that send their events by HTTP.

import Type from 'typebox';
import { CaseId, closed, Identifier, OneOf } from '../../../contract/shapes.js';
import { CLIENTS } from '../../../hooks/hook-event.js';
import { DIALECTS } from '../../../hooks/dialects.js';
import { parseHookEvent } from '../../../runtime/hooks/hook-question.js';
import { UNCHECKED_REASON } from '../../../runtime/hooks/hook-reasons.js';
import { RefusalError } from '../../problems.js';
import { BinaryBody, route, type Route } from './route.js';
import { jsonResponse } from './shapes.js';
import { checkTokenCase } from './run-access.js';

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

export const HOOK_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/hooks/{client}',
    summary: 'Answer one event of a coding agent, in the form of its client: a call that is not allowed is denied',
    rights: ['act'],
    params: HookParams,
    query: HookQuery,
    body: BinaryBody,
    responses: { 200: jsonResponse('The answer in the form of the client; an empty object for none.', AnyObject) },
    async handle({ principal, params: { client }, query, body }, { turnpike }) {
      const { hooks } = turnpike;
      if (hooks === null) throw new RefusalError('NOT_FOUND');
      const case_id = query.case ?? principal.case ?? undefined;
      checkTokenCase(principal, case_id);
      const caller = {
        actor: principal.actor,
        ...(principal.person === undefined ? {} : { person: principal.person }),
        role: principal.role,
        lane: query.lane ?? 'CODING',
        ...(case_id === undefined ? {} : { case: case_id }),
        project: query.project,
      };
      const event = parseHookEvent(Buffer.from(body).toString('utf8'));
      const result = await hooks.answer(client, event, caller);
      const dialect = DIALECTS[client];
      const reply = result.unchecked === true ? dialect.writeFailure(UNCHECKED_REASON, event) : result.reply;
      return { json: reply.body ?? {} };
    },
  }),
];
