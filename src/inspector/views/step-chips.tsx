// The steps that had begun at the cursor, each with its outcome.

import type { RefObject } from 'preact';
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
  const { stop, onKey } = useStand(box, { step, count, from, to, width, setLeft });
  return (
    <>
      <div
        class="chips"
        role="toolbar"
        aria-label="Steps"
        ref={box}
        onKeyDown={onKey}
        onScroll={(event) => setLeft(event.currentTarget.scrollLeft)}
      >
        <div style={{ width: `${count * WIDE}px` }}>
          {Array.from({ length: Math.max(0, to - from) }, (_, at) => (
            <Chip run={run} step={from + at + 1} isStop={from + at + 1 === stop} key={from + at} />
          ))}
        </div>
      </div>
      <CompareButton />
    </>
  );
}

interface Drawn {
  readonly step: number;
  readonly count: number;
  /** Of the steps those that are drawn: behind `from`, up to `to`. */
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly setLeft: (left: number) => void;
}

/** Which chip the tab key comes to, one of those that are drawn; and the keys that go from there to others. */
function useStand(box: RefObject<HTMLDivElement | null>, { step, count, from, to, width, setLeft }: Drawn) {
  /** Where the keys stand; 0: at the step that is shown. */
  const [stand, setStand] = useState(0);
  /** Which one is to have the focus as soon as it is drawn. */
  const wanted = useRef(0);
  const stop = Math.min(Math.max(stand > 0 ? stand : step, from + 1), to);
  useLayoutEffect(() => setStand(0), [step]);
  useLayoutEffect(() => {
    const chip = box.current?.querySelector<HTMLElement>(`[data-step="${wanted.current}"]`);
    if (chip == null) return;
    wanted.current = 0;
    chip.focus();
  }, [stand, from]);
  const onKey = (event: KeyboardEvent): void => {
    const next = standAfter(event.key, stop, count);
    if (next === null || box.current === null) return;
    event.preventDefault();
    const at = (next - 1) * WIDE;
    const { scrollLeft } = box.current;
    if (at < scrollLeft || at + WIDE > scrollLeft + width) box.current.scrollLeft = at - width / 2;
    setLeft(box.current.scrollLeft);
    wanted.current = next;
    setStand(next);
  };
  return { stop, onKey };
}

/** Where the keys come to; null for one that is none of these. */
function standAfter(key: string, at: number, count: number): number | null {
  const to: Readonly<Record<string, number>> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 1, End: count };
  const next = to[key];
  return next === undefined || count === 0 ? null : Math.min(Math.max(next, 1), count);
}

interface ChipProps {
  readonly run: Run;
  readonly step: number;
  /** Whether it is the one that the tab key comes to. */
  readonly isStop: boolean;
}

function Chip({ run, step, isStop }: ChipProps) {
  const store = useStore();
  const outcome = outcomeOf(store.rows, run, step, store.cursor.value.at);
  const selected = store.stepShown() === step;
  const compared = store.view.value.cmp?.run === run.id && store.view.value.cmp.step === step;
  const hue = outcome === null ? 'running' : OUTCOME_HUES[outcome];
  return (
    <button
      type="button"
      class={`chip h-${hue}${compared ? ' compared' : ''}`}
      data-step={step}
      tabIndex={isStop ? 0 : -1}
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
