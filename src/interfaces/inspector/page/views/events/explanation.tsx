// Explains a decision: its checks in order, the rule that decided, and the changes that would reverse it.

import { useStore } from '../common/context.js';
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
