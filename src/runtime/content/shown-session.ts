// A session as everyone may see it: where its lane withholds the spec, the texts of the spec are hashes (C83). Ids,
// states and counts stay.

import { isWithheld } from '../../contract/artifact-ref.js';
import { sha256 } from '../../contract/hash.js';
import type { SpecGate, SpecPhase, SpecTask } from '../../contract/session-spec.js';
import type { NextStep, SessionAnswer, SessionData } from '../../contract/session-answer.js';
import type { SessionState } from '../../session/state.js';
import { OBSERVERS } from './audience.js';
import type { ContentReader } from './content-reader.js';

/** @returns the state itself where the spec may be shown */
export async function shownSession(session: SessionState, reader: ContentReader): Promise<SessionState> {
  const opening = await reader.read({ tree_id: session.session_id, seq: 0 }, OBSERVERS);
  return opening.some(isWithheld) ? withheldSession(session) : session;
}

/** An answer of a session for a person who does not work through it. */
export async function shownAnswer(answer: SessionAnswer, reader: ContentReader): Promise<SessionAnswer> {
  const { data } = answer;
  if (data === null) return answer;
  const opening = await reader.read({ tree_id: data.session_id, seq: 0 }, OBSERVERS);
  return opening.some(isWithheld) ? { ...answer, data: withheldData(data) } : answer;
}

const withheldData = (data: SessionData): SessionData => ({
  ...data,
  next_step: data.next_step === null ? null : withheldStep(data.next_step),
  review: data.review === null ? null : { ...data.review, findings: [] },
  output: null,
});

function withheldSession(session: SessionState): SessionState {
  const { spec, outstanding, gates } = session;
  return {
    ...session,
    spec: { ...spec, title: hashOf(spec.title), phases: spec.phases.map(withheldPhase) },
    gates: Object.fromEntries(Object.entries(gates).map(([id, gate]) => [id, withheldGate(gate)])),
    evidence: null,
    consumed: [],
    outstanding: outstanding === null ? null : { ...outstanding, step: withheldStep(outstanding.step) },
  };
}

const withheldPhase = ({ id, title, tasks, gate }: SpecPhase): SpecPhase => ({
  id,
  title: hashOf(title),
  tasks: tasks.map(withheldTask),
  ...(gate === undefined ? {} : { gate: withheldSpecGate(gate) }),
});

const withheldSpecGate = ({ reviewer, required }: SpecGate): SpecGate => ({
  reviewer,
  ...(required === undefined ? {} : { required }),
});

/** Of a verification the command is text of the spec as well: it is shown as a task whose instruction is a hash. */
const withheldTask = ({ id, title, instruction = title, depends_on }: SpecTask): SpecTask => ({
  id,
  title: hashOf(title),
  instruction: hashOf(instruction),
  ...(depends_on === undefined ? {} : { depends_on }),
});

const withheldStep = (step: NextStep): NextStep => ({
  ...step,
  task_title: step.task_title === null ? null : hashOf(step.task_title),
  instruction: hashOf(step.instruction),
  findings: [],
});

type Gate = SessionState['gates'][string];

const withheldGate = (gate: Gate): Gate =>
  gate.waiver === null ? gate : { ...gate, waiver: { ...gate.waiver, reason_detail: null } };

const hashOf = (text: string): string => `withheld (sha256 ${sha256(text)})`;
