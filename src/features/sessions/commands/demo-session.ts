// The session of the demonstration (`turnpike serve --demo`).

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Turnpike } from '../../../host/turnpike.js';
import { packageFile } from '../../../system/package-files.js';
import type { SessionAnswer } from '../contract/session-answer.js';

/** The person who runs the session. */
const MAINTAINER = { actor: 'maintainer', role: 'maintainer' } as const;

const NOTES: Readonly<Record<string, string>> = {
  contacts: '- Ada: the keys\n- Ben: first aid\n- Cho: the van\n',
  'opening-hours': '- Tuesday: 10:00-16:00\n- Saturday: 9:00-13:00\n',
};

/** Creates a session that has reached its third task and waits for its agent. */
export async function startDemoSession(turnpike: Turnpike): Promise<void> {
  const { sessions, home } = turnpike;
  const caller = MAINTAINER;
  // The directory for its notes.
  if (home !== null) mkdirSync(join(home.sandbox, 'case-handbook', 'notes'), { recursive: true });
  const spec = packageFile('docs/examples/spec.yaml');
  const session_id = (await sessions.start({ spec, case: 'case-handbook', by: caller })).data?.session_id;
  if (session_id === undefined) return;
  let answer: SessionAnswer = await sessions.next(session_id, { context_usage_pct: 3 }, caller);
  for (const [place, [task_id, text]] of Object.entries(NOTES).entries()) {
    const step = answer.data?.next_step;
    if (step?.type !== 'implement_task' || step.task_id !== task_id || step.run_id === null) return;
    await turnpike.submit(step.run_id, noteProposal(task_id, text, place + 1));
    const { step_id, type: step_type, step_proof } = step;
    const last_step_result = { step_id, step_type, outcome: 'success', step_proof, task_id };
    answer = await sessions.next(session_id, { last_step_result, context_usage_pct: 4 + place }, caller);
  }
}

const noteProposal = (task: string, content: string, number: number): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    reasoning: 'The note that the task asks for.',
    action: 'WRITE_FILE',
    args: { path: `/sandbox/notes/${task === 'contacts' ? 'contacts' : 'hours'}.md`, content },
  });
