import type { StateTable } from '../../../interfaces/cli/command.js';
import type { SessionSnapshot } from '../tree/session-of.js';

/** The sessions in the output of `turnpike replay --until`. */
export const SESSION_TABLE: StateTable = {
  head: ['session', 'status', 'why', 'outstanding step', 'tasks done'],
  rows: ({ sessions }) => sessions.map(rowOf),
};

const rowOf = (session: SessionSnapshot): readonly string[] => [
  session.session_id,
  session.status,
  session.pause_reason ?? session.failure_reason ?? '-',
  session.outstanding === null ? '-' : `${session.outstanding.step_id} (${session.outstanding.type})`,
  String(session.tasks_done),
];
