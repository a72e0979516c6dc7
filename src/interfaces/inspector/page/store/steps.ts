// The state of a step at a position: its nine phases, the phase that failed, and its outcome.

import type { Tone } from '../../../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL } from '../../../../core/contract/inspection/needs-approval.js';
import { OUTCOMES, PHASES, type Outcome, type Phase } from '../../../../core/contract/run/phase.js';
import type { Path } from './path.js';
import { toneAt } from './rows/tones.js';
import type { Rows } from './rows/rows.js';
import type { Run } from './rows/runs.js';

export type PhaseState = 'ahead' | 'active' | 'passed' | 'refused' | 'skipped';
export interface PhaseMark {
  readonly phase: Phase;
  readonly state: PhaseState;
}

/** What is shown as the outcome of a step. */
export type ShownOutcome = Outcome | typeof NEEDS_APPROVAL;

/** The phase of a state: the first key of its path. */
const phaseOf = (state: string): Phase | null => PHASES.find((phase) => phase === state.split('.')[0]) ?? null;

/** The phase in which the step was rejected or failed, among the moves that have been made. */
export function findRefusedPhase(path: Path, outcome: ShownOutcome | null): Phase | null {
  for (let place = 0; place < path.movesMade; place += 1) {
    const edge = path.index.edges.get(path.edgeOf(path.moves[place]));
    if (edge?.target !== 'RECORD') continue;
    const phase = phaseOf(edge.source);
    if (phase === 'EXECUTE') return outcome === null || outcome === 'SUCCESS' ? null : phase;
    return edge.guard === 'isReplay' ? null : phase;
  }
  return null;
}

/** The nine phases after the moves of the path that have been made. */
export function listPhases(path: Path, outcome: ShownOutcome | null, hasBegun: boolean): readonly PhaseMark[] {
  const entered = new Set([...path.entered.keys()].map(phaseOf));
  const now = new Set([...path.active].map(phaseOf));
  const refused = findRefusedPhase(path, outcome);
  const recorded = entered.has('RECORD');
  return PHASES.map((phase) => ({ phase, state: hasBegun ? stateOf(phase) : 'ahead' }));

  function stateOf(phase: Phase): PhaseState {
    if (phase === refused) return 'refused';
    if (now.has(phase) && !isInFinalState(path)) return 'active';
    if (entered.has(phase)) return 'passed';
    return recorded && phase !== 'RESPOND' ? 'skipped' : 'ahead';
  }
}

/** Whether the path is in a final state. */
export const isInFinalState = (path: Path): boolean =>
  [...path.active].some((state) => path.index.nodes.get(state)?.type === 'final');

/** The outcome in the trace; null while there is no trace at this position. */
export function outcomeOf(rows: Rows, run: Run, step: number, at: number): ShownOutcome | null {
  const trace = run.traces.at(step - 1);
  return trace < 0 || trace > at ? null : toOutcome(toneAt(rows.tone(trace)));
}

/** Ignores the position: the colour of an edge is known once it was taken. */
export function finalOutcome(rows: Rows, run: Run, step: number): ShownOutcome | null {
  return outcomeOf(rows, run, step, Number.MAX_SAFE_INTEGER);
}

const STEP_OUTCOMES = [...OUTCOMES, NEEDS_APPROVAL] as const;
const toOutcome = (tone: Tone): ShownOutcome | null => STEP_OUTCOMES.find((outcome) => outcome === tone) ?? null;

/** The outcome that the failed phase implies while none is recorded. */
export function guessOutcome(phase: Phase): Outcome {
  if (phase === 'EXECUTE') return 'EXECUTION_ERROR';
  return phase === 'AUTHORIZE' || phase === 'VALIDATE_ACTION' ? 'DENIED' : 'VALIDATION_ERROR';
}

/** The first move that has the colour of the failure. */
export function findRefusalMove(path: Path): number {
  return path.moves.findIndex((move) => path.index.edges.get(path.edgeOf(move))?.target === 'RECORD');
}
