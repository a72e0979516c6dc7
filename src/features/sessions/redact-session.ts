// Redacts a session for readers that are not its agent: if its lane withholds the spec, the texts of the spec become
// hashes (C83). Ids, states and counts stay.

import { isWithheld } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { SpecGate, SpecPhase, SpecTask } from './contract/session-spec.js';
import type { NextStep, SessionAnswer, SessionData } from './contract/session-answer.js';
import type { SessionState } from './rules/session-state.js';
import { OBSERVERS } from '../../runtime/content/audience.js';
import type { ContentReader } from '../../runtime/content/content-reader.js';

/** @returns the state itself if the spec may be shown */
export async function redactSession(session: SessionState, reader: ContentReader): Promise<SessionState> {
  const opening = await reader.read({ tree_id: session.session_id, seq: 0 }, OBSERVERS);
  return opening.some(isWithheld) ? redactState(session) : session;
}

/** Redacts an answer of a session for a person who does not work through it. */
export async function redactAnswer(answer: SessionAnswer, reader: ContentReader): Promise<SessionAnswer> {
  const { data } = answer;
  if (data === null) return answer;
  const opening = await reader.read({ tree_id: data.session_id, seq: 0 }, OBSERVERS);
  return opening.some(isWithheld) ? { ...answer, data: redactData(data) } : answer;
}

const redactData = (data: SessionData): SessionData => ({
  ...data,
  next_step: data.next_step === null ? null : redactStep(data.next_step),
  review: data.review === null ? null : { ...data.review, findings: [] },
  output: null,
});

function redactState(session: SessionState): SessionState {
  const { spec, outstanding, gates } = session;
  return {
    ...session,
    spec: { ...spec, title: redactText(spec.title), phases: spec.phases.map(redactPhase) },
    gates: Object.fromEntries(Object.entries(gates).map(([id, gate]) => [id, redactGate(gate)])),
    evidence: null,
    consumed: [],
    outstanding: outstanding === null ? null : { ...outstanding, step: redactStep(outstanding.step) },
  };
}

const redactPhase = ({ id, title, tasks, gate }: SpecPhase): SpecPhase => ({
  id,
  title: redactText(title),
  tasks: tasks.map(redactTask),
  ...(gate === undefined ? {} : { gate: redactSpecGate(gate) }),
});

const redactSpecGate = ({ reviewer, required }: SpecGate): SpecGate => ({
  reviewer,
  ...(required === undefined ? {} : { required }),
});

/** The command of a verification is text of the spec, too: it is shown as a task whose instruction is a hash. */
const redactTask = ({ id, title, instruction = title, depends_on }: SpecTask): SpecTask => ({
  id,
  title: redactText(title),
  instruction: redactText(instruction),
  ...(depends_on === undefined ? {} : { depends_on }),
});

const redactStep = (step: NextStep): NextStep => ({
  ...step,
  task_title: step.task_title === null ? null : redactText(step.task_title),
  instruction: redactText(step.instruction),
  findings: [],
});

type GateState = SessionState['gates'][string];

const redactGate = (gate: GateState): GateState =>
  gate.waiver === null ? gate : { ...gate, waiver: { ...gate.waiver, reason_detail: null } };

const redactText = (text: string): string => `withheld (sha256 ${sha256(text)})`;
