// The nine phases of a step at the cursor.

import { useStore } from './common/context.js';
import { Icon } from './common/icons.js';
import { momentAfter } from '../store/run-marks.js';
import type { Run } from '../store/rows/runs.js';
import {
  finalOutcome,
  guessOutcome,
  OUTCOME_HUES,
  outcomeOf,
  listPhases,
  findRefusedPhase,
  type PhaseMark,
} from '../store/steps.js';

export function PhaseRail({ run }: { readonly run: Run }) {
  const store = useStore();
  const step = store.stepShown();
  const cursor = store.cursor.value;
  const path = step === 0 ? null : store.courses.path(run, step);
  const begun = step > 0 && step <= store.stepAt(cursor.at);
  if (path === null) return <div class="rail" />;
  path.seekTo(begun ? cursor : momentAfter(-1));
  const recordedOutcome = outcomeOf(store.rows, run, step, cursor.at);
  const final = finalOutcome(store.rows, run, step);
  const refused = findRefusedPhase(path, final);
  const outcome = recordedOutcome ?? (refused === null ? null : (final ?? guessOutcome(refused)));
  const hue = outcome === null ? 'idle' : OUTCOME_HUES[outcome];
  return (
    <div class="rail" data-revision={store.courses.revisionOf(run)}>
      <ol aria-label="Phases">
        {listPhases(path, outcome, begun).map((mark) => (
          <PhaseItem mark={mark} hue={hue} key={mark.phase} />
        ))}
      </ol>
      <span class={`outcome h-${hue}`}>{outcome ?? (begun ? 'in progress' : 'not begun')}</span>
    </div>
  );
}

function PhaseItem({ mark: { phase, state }, hue }: { readonly mark: PhaseMark; readonly hue: string }) {
  return (
    <li class={`${state} ${state === 'refused' ? `h-${hue}` : ''}`} title={`${phase}: ${state}`}>
      <span class="bead">
        {state === 'passed' && <Tick />}
        {state === 'refused' && <Icon name="close" />}
      </span>
      <span class="name">
        {phase.replace('VALIDATE_', '')}
        <span class="said">{`: ${state}`}</span>
      </span>
    </li>
  );
}

const Tick = () => (
  <svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
    <path d="m4.5 8.3 2.4 2.4 4.6-5" />
  </svg>
);
