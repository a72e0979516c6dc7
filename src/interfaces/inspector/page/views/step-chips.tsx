// The steps that had started at the cursor, each with its outcome, and the nine phases of the displayed one.

import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useStore } from './common/context.js';
import { Icon, ToneIcon } from './common/icons.js';
import { useSize } from './common/use-size.js';
import { finalOutcome, findRefusedPhase, guessOutcome, listPhases, outcomeOf, type PhaseMark } from '../store/steps.js';
import { momentAfter } from '../store/run-marks.js';
import type { Run } from '../store/rows/runs.js';
import { scrollTopFor } from '../store/rows/row-window.js';
import { hueOf } from '../store/rows/tones.js';

const WIDE = 40;

export function StepChips({ run }: { readonly run: Run }) {
  const store = useStore();
  const { box, width } = useSize(400);
  const step = store.stepShown();
  const count = Math.max(store.stepAt(store.cursor.value.at), step);
  /** The step with keyboard focus; 0: the displayed step. */
  const [focused, setFocused] = useState(0);
  useLayoutEffect(() => setFocused(0), [step]);
  const { left, scroll } = useScrolled(box, { at: focused > 0 ? focused : step, count, width });
  const from = Math.max(0, Math.floor(left / WIDE) - 2);
  const to = Math.min(count, Math.ceil((left + width) / WIDE) + 2);
  /** The chip that the tab key reaches; always one that is drawn. */
  const stop = Math.min(Math.max(focused > 0 ? focused : step, from + 1), to);
  const focus = useFocus(box);
  const onKey = (event: KeyboardEvent): void => {
    const next = focusAfter(event.key, stop, count);
    if (next === null) return;
    event.preventDefault();
    focus(next);
    setFocused(next);
    scroll(null);
  };
  return (
    <div
      class="chips"
      role="toolbar"
      aria-label="Steps"
      ref={box}
      onKeyDown={onKey}
      onScroll={(event) => scroll(event.currentTarget.scrollLeft)}
    >
      <div style={{ width: `${count * WIDE}px` }}>
        {Array.from({ length: Math.max(0, to - from) }, (_, at) => (
          <Chip run={run} step={from + at + 1} isStop={from + at + 1 === stop} key={from + at} />
        ))}
      </div>
    </div>
  );
}

interface ChipRow {
  /** The step that must be visible: the list scrolls there when it changes. */
  readonly at: number;
  readonly count: number;
  readonly width: number;
}

/** The scroll position, computed before drawing: querying the browser would force a layout of the page. */
function useScrolled(box: RefObject<HTMLDivElement | null>, { at, count, width }: ChipRow) {
  const view = useRef({ of: '', left: 0, times: 0 });
  const [, drawAgain] = useState({});
  const of = `${at} ${width}`;
  if (of !== view.current.of && at > 0) {
    const { left: before, times } = view.current;
    const left = Math.min(Math.max(0, count * WIDE - width), scrollTopFor(at - 1, before, width, WIDE));
    view.current = { of, left, times: left === before ? times : times + 1 };
  }
  const { left, times } = view.current;
  useLayoutEffect(() => {
    if (box.current !== null && times > 0) box.current.scrollLeft = left;
  }, [times]);
  /** The position to which the reader has scrolled; null: the displayed step, wherever it is. */
  const scroll = (to: number | null): void => {
    if (to !== null && Math.abs(to - view.current.left) < 1) return;
    if (to === null) view.current.of = '';
    else view.current.left = to;
    drawAgain({});
  };
  return { left, scroll };
}

/** Focuses a chip as soon as it is drawn. */
function useFocus(box: RefObject<HTMLDivElement | null>): (step: number) => void {
  const wanted = useRef(0);
  useLayoutEffect(() => {
    if (wanted.current === 0) return;
    box.current?.querySelector<HTMLElement>(`[data-step="${wanted.current}"]`)?.focus();
    wanted.current = 0;
  });
  return (step) => void (wanted.current = step);
}

/** The step that a key leads to; null for other keys. */
function focusAfter(key: string, at: number, count: number): number | null {
  const to: Readonly<Record<string, number>> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 1, End: count };
  const next = to[key];
  return next === undefined || count === 0 ? null : Math.min(Math.max(next, 1), count);
}

interface ChipProps {
  readonly run: Run;
  readonly step: number;
  /** Whether the tab key reaches this chip. */
  readonly isStop: boolean;
}

function Chip({ run, step, isStop }: ChipProps) {
  const store = useStore();
  const outcome = outcomeOf(store.rows, run, step, store.cursor.value.at);
  const selected = store.stepShown() === step;
  const cmp = store.comparison.value;
  const compared = cmp?.run === run.id && cmp.step === step;
  return (
    <button
      type="button"
      class={`chip h-${hueOf(outcome ?? 'running')}${compared ? ' compared' : ''}`}
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

/** The nine phases of the displayed step at the cursor. */
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
  const hue = outcome === null ? 'idle' : hueOf(outcome);
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
        {state === 'passed' && <Icon name="tick" />}
        {state === 'refused' && <Icon name="close" />}
      </span>
      <span class="name">
        {phase.replace('VALIDATE_', '')}
        <span class="said">{`: ${state}`}</span>
      </span>
    </li>
  );
}
