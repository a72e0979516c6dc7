// The runs of one tree on a time axis, each below its parent.

import { nameInLedger } from '../../../../core/contract/entry-name.js';
import { useEffect, useState } from 'preact/hooks';
import { useStore } from './common/context.js';
import { ToneIcon } from './common/icons.js';
import { formatClock, formatDuration } from './common/text.js';
import { VirtualList } from './common/virtual-list.js';
import { kindOf, shortId, displayStateOf, type Run } from '../store/rows/runs.js';
import { ancestorsOf, listSpans, type Span } from '../store/rows/run-lines.js';
import { hueOf } from '../store/rows/tones.js';
import type { Store } from '../store/store.js';

const ROW = 26;

export function Waterfall({ run }: { readonly run: Run }) {
  const store = useStore();
  const { at } = store.cursor.value;
  const root = store.runs.byId(ancestorsOf(store.runs, run.id)[0] ?? '') ?? run;
  const isNow = store.isLive.value && store.connection.value === 'live';
  const now = useNow(store, isNow);
  const spans = listSpans(store.rows, store.runs, root, { at, now });
  const from = spans[0]?.from ?? 0;
  const to = Math.max(from + 1, ...spans.map((span) => span.to));
  return (
    <div class="waterfall">
      <header>
        <span class="name">{spans.length} runs</span>
        <TimeScale from={from} to={to} />
      </header>
      <VirtualList
        count={spans.length}
        row={ROW}
        place={spans.findIndex((span) => span.run === run)}
        draw={(place) => <SpanLine span={spans[place]} from={from} all={to - from} isNow={isNow} key={place} />}
        attributes={{ role: 'listbox', 'aria-label': 'Runs in wall time', 'aria-activedescendant': `span-${run.id}` }}
      />
    </div>
  );
}

/** The interval at which the durations of open runs are drawn again, in milliseconds. */
const TICK_MS = 1_000;

/** The time of the shown position: of its entry or, at the head of a ledger that grows, of the service's clock. */
function useNow(store: Store, isNow: boolean): number {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isNow) return;
    const timer = setInterval(() => tick((count) => count + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [isNow]);
  const last = store.rows.time(store.cursor.value.at);
  return isNow ? Math.max(last, store.feed.now() ?? last) : last;
}

/** About five round times. */
function TimeScale({ from, to }: { readonly from: number; readonly to: number }) {
  const all = to - from;
  const rough = all / 5;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10);
  const marks = Array.from({ length: Math.floor(all / step) + 1 }, (_, at) => at * step);
  return (
    <span class="scale" title={`from ${formatClock(from)}`}>
      {marks.map((mark) => (
        <i style={{ left: `${(mark / all) * 100}%` }}>{mark === 0 ? formatClock(from) : `+${formatDuration(mark)}`}</i>
      ))}
    </span>
  );
}

function SpanLine({
  span,
  from,
  all,
  isNow,
}: {
  readonly span: Span | undefined;
  readonly from: number;
  readonly all: number;
  /** Whether the shown position is the present of the service. */
  readonly isNow: boolean;
}) {
  const store = useStore();
  if (span === undefined) return null;
  const { run, depth } = span;
  const state = displayStateOf(run, store.cursor.value.at);
  const kind = kindOf(store.rows, run);
  const { request, executor } = store.rows.creations.get(run.key) ?? { request: null, executor: null };
  const about = request ?? '';
  const selected = store.view.value.run === run.id;
  const [left, width] = [((span.from - from) / all) * 100, ((span.to - span.from) / all) * 100];
  // After the bar, or before it where the bar ends too late, or in it where the bar also begins too early.
  const isInside = left + width > 80 && left < 45;
  const before = isInside ? { left: `calc(${left}% + 6px)` } : { right: `${100 - left}%` };
  const labelPlace = left + width > 80 ? before : { left: `calc(${left + width}% + 6px)` };
  const duration = formatDuration(span.to - span.from);
  const took = span.ended
    ? duration
    : `open for ${duration}${isNow ? '' : ` at ${nameInLedger(store.cursor.value.at)}`}`;
  return (
    <div
      id={`span-${run.id}`}
      class={selected ? 'span selected' : 'span'}
      role="option"
      aria-selected={selected}
      title={`${run.id}\n${about}`}
      onClick={() => store.select(run.id)}
    >
      <span class="name" style={{ paddingInlineStart: `${8 + depth * 14}px` }}>
        <ToneIcon tone={state ?? 'plain'} />
        <span class="said">{state}</span>
        <b>{kind}</b> <code>{shortId(run.id)}</code>
        <span class="about">{about}</span>
      </span>
      <span class={`track h-${hueOf(state ?? 'plain')}`}>
        <i
          class={`bar${span.ended ? '' : ' open'}${executor === 'caller' ? ' by-caller' : ''}`}
          style={{ left: `${left}%`, width: `max(3px, ${width}%)` }}
        />
        <small class={isInside ? 'inside' : ''} style={labelPlace}>
          {took}
        </small>
      </span>
    </div>
  );
}
