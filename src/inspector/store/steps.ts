// How a step stands at a moment: its nine phases, which of them refused, and its outcome.

import type { Tone } from '../../contract/inspection/inspection.js';
import { OUTCOMES, PHASES, type Outcome, type Phase } from '../../contract/run/phase.js';
import type { Path } from './path.js';
import { toneAt, type Hue } from './rows/worst-tones.js';
import type { Rows } from './rows/rows.js';
import type { Run } from './rows/runs.js';

export type PhaseState = 'ahead' | 'active' | 'passed' | 'refused' | 'skipped';
export interface PhaseMark {
  readonly phase: Phase;
  readonly state: PhaseState;
}

/** The phase that a state is in: the first key of its path. */
const phaseOf = (state: string): Phase | null => PHASES.find((phase) => phase === state.split('.')[0]) ?? null;

/** The phase in which the step was refused or went wrong, among the moves that have been made. */
export function findRefusedPhase(path: Path, outcome: Outcome | null): Phase | null {
  for (let place = 0; place < path.movesMade; place += 1) {
    const edge = path.index.edges.get(path.edgeOf(path.moves[place]));
    if (edge?.target !== 'RECORD') continue;
    const phase = phaseOf(edge.source);
    if (phase === 'EXECUTE') return outcome === null || outcome === 'SUCCESS' ? null : phase;
    return edge.guard === 'repeated' ? null : phase;
  }
  return null;
}

/** The nine phases as they are with the moves of the path that have been made. */
export function listPhases(path: Path, outcome: Outcome | null, hasBegun: boolean): readonly PhaseMark[] {
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

/** Whether it stands in a final state. */
export const isInFinalState = (path: Path): boolean =>
  [...path.active].some((state) => path.index.nodes.get(state)?.type === 'final');

/** What its trace says that it came to; null while there is none at this moment. */
export function outcomeOf(rows: Rows, run: Run, step: number, at: number): Outcome | null {
  const trace = run.traces.at(step - 1);
  return trace < 0 || trace > at ? null : toOutcome(toneAt(rows.tone(trace)));
}

/** As before, whenever it was: which colour an edge had is known once it was taken. */
export function finalOutcome(rows: Rows, run: Run, step: number): Outcome | null {
  return outcomeOf(rows, run, step, Number.MAX_SAFE_INTEGER);
}

const toOutcome = (tone: Tone): Outcome | null => OUTCOMES.find((outcome) => outcome === tone) ?? null;

/** Where nobody has recorded an outcome yet, the phase tells which one it will be. */
export function guessOutcome(phase: Phase): Outcome {
  if (phase === 'EXECUTE') return 'EXECUTION_ERROR';
  return phase === 'AUTHORIZE' || phase === 'VALIDATE_ACTION' ? 'DENIED' : 'VALIDATION_ERROR';
}

/** From which of the moves on the colour is that of the refusal. */
export function findRefusalMove(path: Path): number {
  return path.moves.findIndex((move) => path.index.edges.get(path.edgeOf(move))?.target === 'RECORD');
}

/** The words of an outcome, as the colour that it has. */
export const OUTCOME_HUES: Readonly<Record<Outcome, Hue>> = {
  SUCCESS: 'completed',
  VALIDATION_ERROR: 'invalid',
  DENIED: 'denied',
  EXECUTION_ERROR: 'failed',
};
