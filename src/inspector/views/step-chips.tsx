// The steps that had begun at the cursor, each with its outcome.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useStore } from './context.js';
import { Icon, ToneIcon } from './icons.js';
import { OUTCOME_HUES, outcomeOf } from '../store/steps.js';
import type { Run } from '../store/runs.js';

const WIDE = 40;

export function StepChips({ run }: { readonly run: Run }) {
  const store = useStore();
  const box = useRef<HTMLDivElement>(null);
  const [left, setLeft] = useState(0);
  const [width, setWidth] = useState(400);
  const step = store.stepShown();
  const count = Math.max(store.stepAt(store.cursor.value.at), step);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const watch = new ResizeObserver(() => setWidth(current.clientWidth));
    watch.observe(current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null || step === 0) return;
    const at = (step - 1) * WIDE;
    if (at < current.scrollLeft || at + WIDE > current.scrollLeft + width) current.scrollLeft = at - width / 2;
    setLeft(current.scrollLeft);
  }, [step, width]);
  const from = Math.max(0, Math.floor(left / WIDE) - 2);
  const to = Math.min(count, Math.ceil((left + width) / WIDE) + 2);
  return (
    <>
      <div
        class="chips"
        role="group"
        aria-label="Steps"
        ref={box}
        onScroll={(event) => setLeft(event.currentTarget.scrollLeft)}
      >
        <div style={{ width: `${count * WIDE}px` }}>
          {Array.from({ length: Math.max(0, to - from) }, (_, at) => (
            <Chip run={run} step={from + at + 1} key={from + at} />
          ))}
        </div>
      </div>
      <CompareButton />
    </>
  );
}

function Chip({ run, step }: { readonly run: Run; readonly step: number }) {
  const store = useStore();
  const outcome = outcomeOf(store.rows, run, step, store.cursor.value.at);
  const selected = store.stepShown() === step;
  const compared = store.view.value.cmp?.run === run.id && store.view.value.cmp.step === step;
  const hue = outcome === null ? 'running' : OUTCOME_HUES[outcome];
  return (
    <button
      type="button"
      class={`chip h-${hue}${compared ? ' compared' : ''}`}
      aria-pressed={selected}
      aria-label={`Step ${step}, ${outcome ?? 'in progress'}`}
      title={`Step ${step}: ${outcome ?? 'in progress'}`}
      style={{ left: `${(step - 1) * WIDE}px` }}
      onClick={() => store.selectStep(step)}
    >
      {step}
      {outcome !== 'SUCCESS' && step < 1000 && <ToneIcon tone={outcome ?? 'running'} />}
    </button>
  );
}

function CompareButton() {
  const { choosing } = useStore();
  return (
    <button
      type="button"
      class="plain compare"
      aria-pressed={choosing.value}
      aria-label="Compare with another run or step"
      title="Compare with another run or step (c)"
      onClick={() => (choosing.value = !choosing.value)}
    >
      <Icon name="compare" />
    </button>
  );
}
