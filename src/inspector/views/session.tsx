// A session: its phases with their gates and tasks, and what it waits for.

import type { SessionView } from '../../contract/inspection.js';
import { useStore } from './context.js';
import { useAnswer } from './use-answer.js';
import { Visible } from './text.js';
import type { Run } from '../store/runs.js';

export function SessionPanel({ run }: { readonly run: Run }) {
  const store = useStore();
  const id = store.rows.ids.at(run.tree);
  const live = store.isLive.value;
  // At the head it is asked again when its tree has grown.
  const at = live ? store.runs.lastOfTree(run.tree) : store.cursor.value.at;
  const answer = useAnswer(`session ${id} ${at}`, () => store.feed.session(id, live ? null : at), 150);
  if (answer.is === 'asking') return <div class="note">Reading the session…</div>;
  if (answer.is === 'failed') return <div class="note">The session could not be read: {answer.why}</div>;
  if (answer.value === null) return <div class="note">There was no session {id} at this moment.</div>;
  return <Shown session={answer.value} />;
}

function Shown({ session }: { readonly session: SessionView }) {
  const { status, pause_reason, failure_reason, posture, activation, steps_issued, outstanding } = session;
  const why = pause_reason ?? failure_reason;
  return (
    <div class="session" tabIndex={0} role="group" aria-label="Session">
      <dl class="facts wide">
        <dt>status</dt>
        <dd>
          <b class={`strong h-${HUES[status] ?? 'idle'}`}>{status}</b>
          {why !== null && ` (${why})`}
        </dd>
        <dt>posture</dt>
        <dd>{posture ?? 'none'}</dd>
        <dt>activation</dt>
        <dd>{activation}</dd>
        <dt>steps issued</dt>
        <dd>{steps_issued}</dd>
        <dt>waits for</dt>
        <dd>
          {outstanding === null
            ? 'nothing'
            : `${outstanding.type}${outstanding.task_id === null ? '' : ` of ${outstanding.task_id}`}`}
          {outstanding !== null && <code> {outstanding.step_id}</code>}
        </dd>
      </dl>
      <ol class="phases">
        {session.phases.map((phase) => (
          <Phase phase={phase} key={phase.id} />
        ))}
      </ol>
    </div>
  );
}

const HUES: Readonly<Record<string, string>> = {
  running: 'running',
  paused: 'invalid',
  failed: 'failed',
  completed: 'completed',
  ended: 'cancelled',
};

function Phase({ phase: { id, title, state, gate, tasks } }: { readonly phase: SessionView['phases'][number] }) {
  return (
    <li class={state}>
      <h3>
        <code>{id}</code> <Visible text={title} /> <small>{state}</small>
      </h3>
      <ul>
        {tasks.map((task) => (
          <li class={`task ${task.state}`}>
            <span class="state">{task.state}</span>
            <code>{task.id}</code> <Visible text={task.title} />
          </li>
        ))}
      </ul>
      {gate !== null && (
        <p class={`gate ${gate.state}`}>
          gate: <b>{gate.state}</b> <Visible text={gate.detail} />
        </p>
      )}
    </li>
  );
}
