// The selected run: its place in the tree, its state, and one of several views of it.

import type { ComponentChildren } from 'preact';
import { RUN_LINES, SESSION_PANELS } from '../../../../features/feature-panels.js';
import { useStore } from './common/context.js';
import { IconButton, ToneIcon } from './common/icons.js';
import { Machine } from './chart/machine.js';
import { PhaseRail, StepChips } from './step-chips.js';
import { StepStoryPanel } from './events/step-story-panel.js';
import { Waterfall } from './waterfall.js';
import type { Tab } from '../store/address.js';
import { firstEntryOf, kindOf, shortId, displayStateOf, type Run } from '../store/rows/runs.js';
import { hueOf } from '../store/rows/tones.js';
import { ancestorsOf } from '../store/rows/run-lines.js';

export function Center() {
  const store = useStore();
  const run = store.run.value;
  if (run === null) return <NoRunNotice />;
  const tab = store.tab.value;
  return (
    <section class="center" aria-label="Run">
      <Crumbs run={run} />
      {RUN_LINES.map((Line) => (
        <Line run={run} />
      ))}
      <Tabs run={run} />
      {(tab === 'step' || tab === 'story') && <PhaseRail run={run} />}
      <div
        class="panel"
        id="panel"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        data-revision={tab === 'run' || tab === 'step' ? store.courses.revisionOf(run) : store.revision.value}
      >
        {(tab === 'run' || tab === 'step') && <Machine run={run} />}
        {tab === 'story' && <StepStoryPanel run={run} />}
        {tab === 'time' && <Waterfall run={run} />}
        {tab === 'session' && SESSION_PANELS.map((Panel) => <Panel run={run} />)}
      </div>
    </section>
  );
}

function NoRunNotice() {
  const { run } = useStore().view.value;
  return (
    <section class="center" aria-label="Run">
      <div class="note">{run === null ? 'Choose a run.' : `There is no run ${run} in this ledger.`}</div>
    </section>
  );
}

function Crumbs({ run }: { readonly run: Run }) {
  const store = useStore();
  const ids = ancestorsOf(store.runs, run.id);
  const state = displayStateOf(run, store.cursor.value.at);
  return (
    <div class="crumbs" data-revision={store.revision.value}>
      <ol aria-label="Lineage">
        {ids.map((id) => {
          const one = store.runs.byId(id);
          const last = id === run.id;
          return (
            <li key={id}>
              <button
                type="button"
                class="plain"
                aria-current={last ? 'true' : undefined}
                title={id}
                onClick={() => store.select(id)}
              >
                {one === null ? 'run' : kindOf(store.rows, one)} <code>{shortId(id)}</code>
              </button>
            </li>
          );
        })}
      </ol>
      <span class="grow" />
      <RunFacts run={run} />
      {firstEntryOf(run) > store.cursor.value.at && <span class="pill h-idle">not created yet</span>}
      {state !== null && (
        <span class={`pill h-${hueOf(state)}`}>
          <ToneIcon tone={state} />
          {state}
        </span>
      )}
    </div>
  );
}

/** The actor, role, lane and case of the run. */
function RunFacts({ run }: { readonly run: Run }) {
  const born = useStore().rows.creations.get(run.key);
  if (born === undefined) return null;
  const facts = [born.role, born.lane, born.case].filter((one) => one !== null);
  return (
    <span class="about" title={`actor ${born.actor}, correlation ${born.correlation}`}>
      {facts.join(' · ')}
    </span>
  );
}

function Tabs({ run }: { readonly run: Run }) {
  const store = useStore();
  const kind = kindOf(store.rows, run);
  const agent = kind === 'agent';
  const step = agent ? store.stepShown() : 0;
  const stepSuffix = step > 0 ? ` · #${step}` : '';
  const session = store.runs.get(run.tree);
  const inSession = SESSION_PANELS.length > 0 && session !== null && kindOf(store.rows, session) === 'session';
  return (
    <div class="tabs" data-revision={agent ? store.courses.revisionOf(run) : store.revision.value}>
      <div role="tablist" aria-label="Views">
        <TabButton tab="run">{kind === 'session' ? 'Session machine' : 'Run machine'}</TabButton>
        {agent && <TabButton tab="step">Step machine{stepSuffix}</TabButton>}
        {agent && <TabButton tab="story">Agent’s view</TabButton>}
        <TabButton tab="time">Waterfall</TabButton>
        {inSession && <TabButton tab="session">Session</TabButton>}
      </div>
      {agent ? <StepChips run={run} /> : <span class="grow" />}
      <CompareButton />
    </div>
  );
}

/** Offered only where there is a run or step of the same kind to compare with. */
function CompareButton() {
  const store = useStore();
  return (
    <IconButton
      icon="compare"
      class="compare"
      aria-pressed={store.isChoosingComparison.value}
      label="Compare with another run or step"
      title="Compare with another run of the same kind, or with another step (c)"
      disabled={!store.hasComparison}
      onClick={() => store.toggleComparison()}
    />
  );
}

function TabButton({ tab, children }: { readonly tab: Tab; readonly children: ComponentChildren }) {
  const store = useStore();
  const own = store.tab.value === tab;
  return (
    <button
      type="button"
      role="tab"
      id={`tab-${tab}`}
      ref={own ? bringIntoView : null}
      aria-selected={own}
      aria-controls="panel"
      onClick={() => store.openTab(tab)}
    >
      {children}
    </button>
  );
}

/** On a narrow screen the list of tabs scrolls. */
const bringIntoView = (tab: HTMLElement | null): void => tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
