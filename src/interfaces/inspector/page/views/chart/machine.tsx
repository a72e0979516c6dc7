// The machine of a run, or of one of its steps, at the cursor; or two paths through it on one drawing.

import { nameInLedger } from '../../../../../core/contract/entry-name.js';
import type { ComponentChildren } from 'preact';
import type { Course } from '../../../../../core/contract/inspection/inspection.js';
import { useStore } from '../common/context.js';
import { ChartView } from './chart.js';
import { Icon } from '../common/icons.js';
import type { Drawing } from './drawing.js';
import { createComparison, createDrawing } from './drawing.js';
import { shortenHash } from '../common/text.js';
import { kindOf, shortId, type Run } from '../../store/rows/runs.js';
import type { Store } from '../../store/store.js';

export function Machine({ run }: { readonly run: Run }) {
  const store = useStore();
  const tab = store.tab.value;
  const step = tab === 'step' ? store.stepShown() : 0;
  const problem = findDrawingProblem(store, run, tab === 'step', step);
  if (problem !== null) return <div class="note">{problem}</div>;
  const cmp = store.comparison.value;
  const drawing = cmp === null ? createDrawing(store, run, step) : createComparison(store, run, step, cmp);
  if (drawing === null) return <div class="note">Reading the path through the machine…</div>;
  return (
    <>
      <ChartView drawing={drawing} label={chartLabel(drawing)} />
      <DefinitionLine drawing={drawing} run={run} />
      {cmp !== null && <Legend run={run} step={step} />}
    </>
  );
}

/** Why there is nothing to draw; null if there is, or will be. */
function findDrawingProblem(store: Store, run: Run, ofStep: boolean, step: number): ComponentChildren {
  const kind = kindOf(store.rows, run);
  const { cmp } = store.view.value;
  const other = cmp === null ? null : store.runs.byId(cmp.run);
  if (other !== null && !store.canCompare(other.id))
    return `A run of kind ${kind} cannot be compared with one of kind ${kindOf(store.rows, other)}: press Esc.`;
  if (ofStep && kind !== 'agent')
    return `A ${kind} run has no steps: it is one action, which is authorized and executed as a whole.`;
  const course = store.courses.course(run);
  const state = store.courses.stateOf(run);
  if (course === null) {
    if (state === 'none') return 'The ledger contains no path of this run through its machine.';
    return state === 'failed' ? 'The path through the machine could not be read.' : null;
  }
  if (ofStep && step === 0)
    return course.cut === null ? 'No step has begun yet.' : `Not checked: ${cutText(course.cut)}`;
  const hash = ofStep ? course.step_chart : course.chart;
  const chart = store.courses.chart(hash);
  if (chart !== 'none') return null;
  return (
    <>
      definition <code>{hash === null || hash === '' ? 'unknown' : shortenHash(hash)}</code> isn’t in this bundle
    </>
  );
}

/** Names the drawn machine visibly. */
function DefinitionLine({ drawing, run }: { readonly drawing: Drawing; readonly run: Run }) {
  const store = useStore();
  const { machine, hash } = drawing.index.chart;
  const cut = store.courses.course(run)?.cut ?? null;
  const revision = store.courses.revisionOf(run);
  return (
    <div class="definition">
      <span title={hash}>
        {machine} machine, definition <code>{shortenHash(hash)}</code>
      </span>
      {revision < store.revision.value && (
        <span class="h-invalid strong">as of {nameInLedger(revision - 1)}, reading on…</span>
      )}
      {cut !== null && (
        <span class="h-invalid strong">
          known to {nameInLedger(cut.log_index)}: {cutText(cut)}
        </span>
      )}
    </div>
  );
}

const cutText = ({ why, needs }: NonNullable<Course['cut']>): string =>
  needs ??
  (why === 'withheld' ? 'later content was erased or withheld' : 'the machines of this version decide differently');

const chartLabel = ({ index, active, sides }: Drawing): string => {
  const names = [...active].filter((id) => index.childrenOf(id).length === 0).map((id) => id.replaceAll('.', ' in '));
  if (sides !== null) return `Statechart of ${index.chart.machine}, two paths through it`;
  return `Statechart of ${index.chart.machine}; active: ${names.join(', ') || 'nothing yet'}`;
};

function Legend({ run, step }: { readonly run: Run; readonly step: number }) {
  const store = useStore();
  const cmp = store.comparison.value;
  if (cmp === null) return null;
  const name = (id: string, of: number): string => `${shortId(id)}${of > 0 ? ` #${of}` : ''}`;
  return (
    <div class="legend" role="group" aria-label="Comparison">
      <span class="only-a">
        only A <code title={run.id}>{name(run.id, step)}</code>
      </span>
      <span class="only-b">
        only B <code title={cmp.run}>{name(cmp.run, cmp.step)}</code>
      </span>
      <span class="both">both</span>
      <button type="button" class="plain" onClick={() => store.change({ cmp: null })}>
        <Icon name="close" /> End comparison
      </button>
    </div>
  );
}
