// The nine phases of a step at the cursor.

import { useStore } from './context.js';
import { Icon } from './icons.js';
import { endOf } from '../store/marks.js';
import type { Run } from '../store/runs.js';
import { finalOutcome, guessed, OUTCOME_HUES, outcomeOf, phasesOf, refusedIn, type PhaseMark } from '../store/steps.js';

export function PhaseRail({ run }: { readonly run: Run }) {
  const store = useStore();
  const step = store.stepShown();
  const cursor = store.cursor.value;
  const path = step === 0 ? null : store.courses.path(run, step);
  const begun = step > 0 && step <= store.stepAt(cursor.at);
  if (path === null) return <div class="rail" />;
  path.seekTo(begun ? cursor : endOf(-1));
  const said = outcomeOf(store.rows, run, step, cursor.at);
  const final = finalOutcome(store.rows, run, step);
  const refused = refusedIn(path, final);
  const outcome = said ?? (refused === null ? null : (final ?? guessed(refused)));
  const hue = outcome === null ? 'idle' : OUTCOME_HUES[outcome];
  return (
    <div class="rail">
      <ol aria-label="Phases">
        {phasesOf(path, outcome, begun).map((mark) => (
          <Phase mark={mark} hue={hue} key={mark.phase} />
        ))}
      </ol>
      <span class={`outcome h-${hue}`}>{outcome ?? (begun ? 'in progress' : 'not begun')}</span>
    </div>
  );
}

function Phase({ mark: { phase, state }, hue }: { readonly mark: PhaseMark; readonly hue: string }) {
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
