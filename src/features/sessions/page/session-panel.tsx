// A session: its phases with their gates and tasks, and its outstanding step.

import { nameInLedger } from '../../../core/contract/entry-name.js';
import { useRef } from 'preact/hooks';
import type { Packet, SessionView } from '../../../interfaces/inspector/contract/session-view.js';
import { useStore } from '../../../interfaces/inspector/page/views/common/context.js';
import { PacketLine } from './packet.js';
import { useAnswer } from '../../../interfaces/inspector/page/views/common/use-answer.js';
import { formatCount, VisibleText } from '../../../interfaces/inspector/page/views/common/text.js';
import type { Run } from '../../../interfaces/inspector/page/store/rows/runs.js';
import { sessionKey } from '../../../interfaces/inspector/page/store/store.js';

export function SessionPanel({ run }: { readonly run: Run }) {
  const store = useStore();
  const id = store.rows.ids.at(run.tree);
  const live = store.isLive.value;
  // At the head it is requested again when its tree has grown.
  const at = live ? store.runs.lastOfTree(run.tree) : store.cursor.value.at;
  const key = sessionKey(id, at);
  const prepared = store.preparedSession(key);
  const requested = useAnswer(prepared === undefined ? key : null, () => store.feed.session(id, at), 150);
  const answer = prepared === undefined ? requested : ({ is: 'here', value: prepared } as const);
  // Expanded parts stay expanded while it is requested again.
  const shown = useRef<SessionBodyProps | null>(null);
  if (answer.is === 'here') {
    const { value } = answer;
    shown.current = value && { session: value, isAhead: !live && store.runs.isAhead(run.tree, value.at, at) };
  }
  if (answer.is === 'failed') return <div class="note">The session could not be read: {answer.why}</div>;
  if (shown.current?.session.session_id === id) return <SessionBody {...shown.current} />;
  if (answer.is === 'asking') return <div class="note">Reading the session…</div>;
  return <div class="note">The session {id} did not exist at this position.</div>;
}

interface SessionBodyProps {
  readonly session: SessionView;
  /** Whether the shown state is later than the selected position. */
  readonly isAhead: boolean;
}

function SessionBody({ session, isAhead }: SessionBodyProps) {
  const { status, pause_reason, failure_reason, posture, activation, steps_issued, outstanding } = session;
  const why = pause_reason ?? failure_reason;
  return (
    <div class="session" tabIndex={0} role="group" aria-label="Session">
      {isAhead && (
        <p class="h-invalid strong" role="note">
          This file contains the session only as of {nameInLedger(session.at)}: the shown state is later than the
          selected position.
        </p>
      )}
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
        <dt>outstanding step</dt>
        <dd>
          {outstanding === null
            ? 'nothing'
            : `${outstanding.type}${outstanding.task_id === null ? '' : ` of ${outstanding.task_id}`}`}
          {outstanding !== null && <code> {outstanding.step_id}</code>}
        </dd>
      </dl>
      {session.packets_before > 0 && (
        <p class="quiet">
          {formatCount(session.packets_before)} earlier packets were issued before the ones listed here: go back to see
          them.
        </p>
      )}
      <ol class="phases">
        {session.phases.map((phase) => (
          <SessionPhase phase={phase} session={session} key={phase.id} />
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

interface PhaseProps {
  readonly phase: SessionView['phases'][number];
  readonly session: SessionView;
}

function SessionPhase({ phase: { id, title, state, gate, tasks }, session }: PhaseProps) {
  const { session_id } = session;
  const own = groupByTask(session.packets.filter(({ phase_id }) => phase_id === id));
  return (
    <li class={state}>
      <h3>
        <code>{id}</code> <TitleText text={title} /> <small>{state}</small>
      </h3>
      <ul>
        {tasks.map((task) => (
          <li class={`task ${task.state}`} key={task.id}>
            <span class="state">{task.state}</span>
            <code>{task.id}</code> <TitleText text={task.title} />
            <PacketList all={own.get(task.id)} session_id={session_id} />
          </li>
        ))}
      </ul>
      {gate !== null && (
        <p class={`gate ${gate.state}`}>
          gate: <b>{gate.state}</b> <VisibleText text={gate.detail} />
        </p>
      )}
      <PacketList all={own.get(null)} session_id={session_id} />
    </li>
  );
}

/** Null: the packets about the gate of the phase. */
function groupByTask(packets: readonly Packet[]): ReadonlyMap<string | null, readonly Packet[]> {
  const found = new Map<string | null, Packet[]>();
  for (const packet of packets) {
    const known = found.get(packet.task_id);
    if (known === undefined) found.set(packet.task_id, [packet]);
    else known.push(packet);
  }
  return found;
}

const TitleText = ({ text }: { readonly text: string }) =>
  text === '' ? <small class="withheld">title withheld by lane policy</small> : <VisibleText text={text} />;

/** The packets of the agent, in the order in which they were issued. */
function PacketList({
  all = [],
  session_id,
}: {
  readonly all?: readonly Packet[] | undefined;
  readonly session_id: string;
}) {
  if (all.length === 0) return null;
  return (
    <ul class="packets">
      {all.map((packet) => (
        <PacketLine packet={packet} session_id={session_id} key={packet.log_index} />
      ))}
    </ul>
  );
}
