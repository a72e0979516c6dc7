// The sessions of a home that another process has: the same methods, with the same answers.

import { resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { AnsweredList, AnsweredSession, AnsweredTask } from './answer-shape.js';
import type { SessionQuestion } from './session-question.js';
import type { SessionCaller, Sessions } from './sessions.js';

/** Puts a question to the other process. @returns an answer of this shape */
export type AskThere = <T extends TSchema>(question: SessionQuestion, shape: T) => Promise<Static<T>>;

export function remoteSessions(ask: AskThere): Sessions {
  const session = async (question: SessionQuestion) =>
    (await ask('by' in question ? { ...question, by: named(question.by) } : question, AnsweredSession)).answer;
  return {
    start: ({ by, scope, limits, ...options }) =>
      session({
        method: 'start',
        request: {
          ...options,
          spec: absolute(options.spec),
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
      session({ method: 'rebase', session_id, request: { ...request, spec: absolute(request.spec) }, by }),
    waive: (session_id, request, by) => session({ method: 'waive', session_id, request, by }),
    status: (session_id) => session({ method: 'status', session_id }),
    prepare: async (session_id, task_id) => {
      const about = task_id === undefined ? {} : { task_id };
      return (await ask({ method: 'prepare', session_id, ...about }, AnsweredTask)).answer;
    },
    list: async (spec_id) => {
      const of = spec_id === undefined ? {} : { spec_id };
      return (await ask({ method: 'list', ...of }, AnsweredList)).answer;
    },
  };
}

/** Whatever else the caller's object holds stays here. */
const named = ({ actor, role }: SessionCaller): SessionCaller => ({ actor, role });

/** A path as seen from here. */
const absolute = <T>(spec: string | T): string | T => (typeof spec === 'string' ? resolve(spec) : spec);
