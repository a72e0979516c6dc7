// The transitions that were not taken from the active states at the cursor, with their guards.

import { useStore } from '../common/context.js';
import { firstEntryOf, type Run } from '../../store/rows/runs.js';
import { finalOutcome, isInFinalState, findRefusalMove, findRefusedPhase } from '../../store/steps.js';
import { findUntakenTransitions } from '../../store/untaken-transitions.js';

/** Maximum number of listed transitions. */
const SHOWN_MAX = 24;

/** @param step 0 for the run's own machine */
export function UntakenTransitions({ run, step }: { readonly run: Run; readonly step: number }) {
  const store = useStore();
  const cursor = store.cursor.value;
  const path = store.courses.path(run, step);
  if (path === null || firstEntryOf(run) > cursor.at) return null;
  path.seekTo(cursor);
  // Of an ended step, only the state in which it failed is of interest.
  if (step > 0 && isInFinalState(path) && findRefusedPhase(path, finalOutcome(store.rows, run, step)) !== null)
    path.seek(findRefusalMove(path));
  const all = findUntakenTransitions(path);
  if (all.length === 0) return null;
  const names = [...path.active].filter((id) => path.index.childrenOf(id).length === 0);
  return (
    <div class="why-not">
      <h3>Not taken from {names.map((id) => id.replaceAll('.', ' › ')).join(', ')}</h3>
      <ul>
        {all.slice(0, SHOWN_MAX).map(({ edge: { id, event, guard, target, source }, hasEventOccurred: came }) => (
          <li key={id} class={came ? 'came' : ''}>
            <code>{event}</code>
            {guard !== null && <i>[{guard}]</i>}
            <span>{target === null ? 'stays' : `→ ${target === '' ? source : target.replaceAll('.', ' › ')}`}</span>
            {came && <small>another transition was taken on this event</small>}
          </li>
        ))}
      </ul>
      {all.length > SHOWN_MAX && <small>and {all.length - SHOWN_MAX} more, on the chart</small>}
    </div>
  );
}
