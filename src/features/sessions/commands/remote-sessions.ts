// The sessions of a home that another process has locked: the same methods, with the same answers.

import { resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { SessionListResult, SessionAnswerResult, TaskDetailsResult } from '../answer-schemas.js';
import type { RequestSender } from '../../../runtime/host-feature.js';
import type { SessionRequest } from '../session-request.js';
import type { SessionCaller, Sessions } from '../sessions.js';

/**
 * The sessions of the process that owns the ledger.
 * @param contract the contract folder by which it must judge specs, or null for any
 */
export function remoteSessions(owner: RequestSender, contract: string | null): Sessions {
  const send = <T extends TSchema>(question: SessionRequest, schema: T): Promise<Static<T>> => {
    const judgesSpec = question.method === 'start' || question.method === 'rebase';
    const request = { op: 'session', contract: judgesSpec ? contract : null, question };
    return owner.request(request, schema);
  };
  const session = async (sessionRequest: SessionRequest) =>
    (
      await send(
        'by' in sessionRequest ? { ...sessionRequest, by: toCaller(sessionRequest.by) } : sessionRequest,
        SessionAnswerResult,
      )
    ).answer;
  return {
    start: ({ by, scope, limits, ...options }) =>
      session({
        method: 'start',
        request: {
          ...options,
          spec: resolveSpec(options.spec),
          ...(scope === undefined ? {} : { scope: { ...scope } }),
          ...(limits === undefined ? {} : { limits: { ...limits } }),
        },
        by,
      }),
    next: (session_id, request, by) => session({ method: 'next', session_id, request, by }),
    replay: (session_id, by) => session({ method: 'replay', session_id, by }),
    heartbeat: (session_id, request, by) => session({ method: 'heartbeat', session_id, request, by }),
    verify: (session_id, request, by) => session({ method: 'verify', session_id, request, by }),
    review: (session_id, request, by) => session({ method: 'review', session_id, request, by }),
    pause: (session_id, request, by) => session({ method: 'pause', session_id, request, by }),
    resume: (session_id, request, by) => session({ method: 'resume', session_id, request, by }),
    end: (session_id, request, by) => session({ method: 'end', session_id, request, by }),
    rebase: (session_id, request, by) =>
      session({ method: 'rebase', session_id, request: { ...request, spec: resolveSpec(request.spec) }, by }),
    waive: (session_id, request, by) => session({ method: 'waive', session_id, request, by }),
    status: (session_id) => session({ method: 'status', session_id }),
    prepare: async (session_id, task_id) => {
      const taskFilter = task_id === undefined ? {} : { task_id };
      return (await send({ method: 'prepare', session_id, ...taskFilter }, TaskDetailsResult)).answer;
    },
    list: async (spec_id) => {
      const specFilter = spec_id === undefined ? {} : { spec_id };
      return (await send({ method: 'list', ...specFilter }, SessionListResult)).answer;
    },
  };
}

/** Only these members are sent. */
const toCaller = ({ actor, role }: SessionCaller): SessionCaller => ({ actor, role });

/** Resolved against the working directory of this process. */
const resolveSpec = <T>(spec: string | T): string | T => (typeof spec === 'string' ? resolve(spec) : spec);
