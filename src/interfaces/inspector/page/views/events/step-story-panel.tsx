// One step from both sides: what the agent sent and received, next to what was recorded.

import { nameInLedger } from '../../../../../core/contract/entry-name.js';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import type { StepStory } from '../../../../../core/contract/inspection/inspection.js';
import { useStore } from '../common/context.js';
import { ArtifactContent, JsonOrText } from './artifact-content.js';
import { entryOf } from './entry-details.js';
import { JsonView } from '../common/json-view.js';
import { useAnswer } from '../common/use-answer.js';
import { ExplanationView, UntakenTransitions } from './explanation.js';
import type { Run } from '../../store/rows/runs.js';
import { entryLines, responseLines } from '../../text/text-authors.js';

export function StepStoryPanel({ run }: { readonly run: Run }) {
  const store = useStore();
  const step = store.stepShown();
  const trace = run.traces.at(step - 1);
  const key = step === 0 ? null : `${run.id}/${step}/${trace}`;
  // Readings are recorded, so a reader at the head stays at the current position.
  useLayoutEffect(() => {
    if (key !== null) store.hold();
  }, [key]);
  const answer = useAnswer(key, () => store.feed.step(run.id, step));
  if (step === 0) return <div class="note">No step has begun yet.</div>;
  if (answer.is === 'asking') return <div class="note">Reading step {step}…</div>;
  if (answer.is === 'failed') return <div class="note">The step could not be read: {answer.why}</div>;
  if (answer.value === null) return <div class="note">There is no step {step} in this run.</div>;
  return <StorySides story={answer.value} run={run} />;
}

function StorySides({ story, run }: { readonly story: StepStory; readonly run: Run }) {
  const { at } = useStore().cursor.value;
  const recorded = story.trace !== null && story.trace <= at;
  return (
    <div class="story" tabIndex={0} role="group" aria-label={`Step ${story.step} from both sides`}>
      <section>
        <h2>What the agent saw</h2>
        <StoryPart title="It proposed">
          <ProposalSide at={story.proposal} />
        </StoryPart>
        <StoryPart title="It received">
          {recorded ? <ResponseSide response={story.response} /> : <p class="quiet">Nothing yet, at the cursor.</p>}
        </StoryPart>
      </section>
      <section>
        <h2>What was recorded</h2>
        {story.decision !== null && story.decision <= at && (
          <StoryPart title={`Decision, ${nameInLedger(story.decision)}`}>
            <ExplanationView at={story.decision} />
          </StoryPart>
        )}
        <StoryPart title={story.trace === null ? 'Trace' : `Trace, ${nameInLedger(story.trace)}`}>
          {recorded && story.explanation !== undefined && <p class="reason">{story.explanation}</p>}
          {recorded ? <RecordedSide at={story.trace} /> : <p class="quiet">None yet, at the cursor.</p>}
        </StoryPart>
        <UntakenTransitions run={run} step={story.step} />
      </section>
    </div>
  );
}

const StoryPart = ({ title, children }: { readonly title: string; readonly children: ComponentChildren }) => (
  <div class="part-of">
    <h3>{title}</h3>
    {children}
  </div>
);

function ProposalSide({ at }: { readonly at: number }) {
  const store = useStore();
  const answer = useAnswer(`event ${at}`, () => store.event(at));
  if (answer.is !== 'here') return <p class="quiet">reading…</p>;
  const artifact = answer.value?.artifacts.find(({ kind }) => kind === 'raw_payload') ?? answer.value?.artifacts[0];
  if (artifact === undefined) return <p class="quiet">It is not available.</p>;
  return <ArtifactContent at={at} entry={answer.value?.text ?? ''} artifact={artifact} />;
}

function ResponseSide({ response }: { readonly response: string | null }) {
  if (response === null)
    return <p class="withheld">The content is unavailable: it was erased, or lane policy withholds it.</p>;
  return <JsonOrText text={response} whose="response" author={responseLines} />;
}

function RecordedSide({ at }: { readonly at: number }) {
  const store = useStore();
  const answer = useAnswer(`event ${at}`, () => store.event(at));
  if (answer.is !== 'here') return <p class="quiet">reading…</p>;
  const entry = answer.value === null ? null : entryOf(answer.value.text);
  if (entry === null) return <p class="quiet">It is not available.</p>;
  return <JsonView value={entry.body} author={entryLines(entry.type, entry.body)} />;
}
