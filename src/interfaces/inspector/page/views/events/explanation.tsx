// Explains a decision: its checks in order, the rule that decided, and the changes that would reverse it. Explains a
// state: the transitions that were not taken from it, with their guards.

import { useStore } from '../common/context.js';
import { findUntakenTransitions } from '../../store/path.js';
import { firstEntryOf, type Run } from '../../store/rows/runs.js';
import { finalOutcome, isInFinalState, findRefusalMove, findRefusedPhase } from '../../store/steps.js';
import { useAnswer } from '../common/use-answer.js';
import { NEEDS_APPROVAL, needsApproval } from '../../../../../core/contract/inspection/needs-approval.js';
import { VisibleText } from '../common/text.js';

export function ExplanationView({ at }: { readonly at: number }) {
  const store = useStore();
  const answer = useAnswer(`why ${at}`, () => store.feed.why(at));
  if (answer.is === 'asking') return <div class="why quiet">Reading the explanation…</div>;
  if (answer.is === 'failed') return <div class="why">The explanation could not be read: {answer.why}</div>;
  if (answer.value === null) return <div class="why quiet">No explanation: its policy is not available.</div>;
  const { decision, rule_id, checks, changes } = answer.value;
  const waits = needsApproval(rule_id);
  const hue = waits ? 'waiting' : decision === 'allow' ? 'completed' : 'denied';
  return (
    <div class="why">
      <h3>
        Why <span class={`pill h-${hue}`}>{waits ? NEEDS_APPROVAL : decision}</span> by <code>{rule_id}</code>
      </h3>
      {waits && (
        <p>
          Policy allows this request once approvers have voted for exactly it. A run of a person waits for the votes. A
          proposal of an agent is recorded as DENIED (APPROVAL_REQUIRED): once approved, the agent proposes it again.
        </p>
      )}
      <ol>
        {checks.map(({ check, passed, detail }) => (
          <li class={passed === false ? `h-${hue}` : passed === true ? 'h-completed' : 'skipped'}>
            <i>{passed === false ? (waits ? '…' : '✕') : passed === true ? '✓' : '·'}</i>
            <b>{check}</b>
            <span>
              <VisibleText text={detail} />
            </span>
          </li>
        ))}
      </ol>
      {changes.length > 0 && (
        <>
          <h4>{waits ? 'What would make it need no approval' : 'What would reverse it'}</h4>
          <ul>
            {changes.map(({ text, gives }) => (
              <li>
                <VisibleText text={text} /> <small>gives {gives}</small>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

/** Maximum number of listed transitions. */
const SHOWN_MAX = 24;

/**
 * The transitions that were not taken from the active states at the cursor.
 * @param step 0 for the run's own machine
 */
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
