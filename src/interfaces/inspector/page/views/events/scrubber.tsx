// The whole log as one line: problems stand out, and the entries of the run are below. The axis is the order of the
// entries, so that idle time takes no space.

import { useMemo } from 'preact/hooks';
import { useStore } from '../common/context.js';
import { IconButton } from '../common/icons.js';
import { moveCursorBy } from '../common/keys.js';
import { formatClock, formatCount } from '../common/text.js';
import { followPointer, useSize } from '../common/use-size.js';
import type { Run } from '../../store/rows/runs.js';
import type { Store } from '../../store/store.js';
import { hueOf, FIRST_MARKED, toneAt, type Hue } from '../../store/rows/tones.js';

export function Scrubber() {
  const store = useStore();
  const { at } = store.cursor.value;
  return (
    <footer class="scrubber" data-revision={store.revision.value}>
      <ScrubberButtons store={store} />
      <ScrubberTrack />
      <div class="where">
        <span>
          <b>{formatCount(at + 1)}</b> / {formatCount(store.rows.end)}
        </span>
        <small>{formatClock(store.rows.time(at))}</small>
      </div>
      <LiveButton />
    </footer>
  );
}

const ScrubberButtons = ({ store }: { readonly store: Store }) => (
  <div class="buttons">
    <IconButton
      icon="first"
      label="First event"
      title="First event (Home)"
      onClick={() => store.goTo({ at: store.rows.first, moves: 0 })}
    />
    <IconButton icon="back" label="One event back" title="One event back (←)" onClick={() => moveCursorBy(store, -1)} />
    <IconButton icon="on" label="One event on" title="One event on (→)" onClick={() => moveCursorBy(store, 1)} />
  </div>
);

/** In a log that does not grow, the head is the end of the file. */
function LiveButton() {
  const store = useStore();
  const connection = store.connection.value;
  const offline = ['lost', 'refused', 'other'].includes(connection);
  const live = store.isLive.value;
  const words = connection === 'closed' ? { on: 'At the end', off: 'To the end' } : { on: 'Live', off: 'Go live' };
  return (
    <button type="button" class={live ? 'live on' : 'live'} disabled={live && offline} onClick={() => store.goTo(null)}>
      {live && !offline && <i class="dot" />}
      {offline ? 'Offline' : live ? words.on : words.off}
    </button>
  );
}

function ScrubberTrack() {
  const store = useStore();
  const { box, width } = useSize();
  const { begin, end } = store.rows;
  const { at } = store.cursor.value;
  const run = store.run.value;
  const ticks = useMemo(() => markedTicks(store, width), [store.rev.value, width]);
  const strip = useMemo(() => runStrip(store, run, width), [store.rev.value, width, run]);
  const x = ((at + 1 - begin) / Math.max(1, end - begin)) * width;
  const to = (clientX: number): void => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    const part = Math.max(0, Math.min(1, (clientX - left) / Math.max(1, width)));
    const place = begin + Math.round(part * (end - begin)) - 1;
    store.goTo(part === 1 ? null : { at: Math.max(store.rows.first, place), moves: 0 });
  };
  return (
    <div
      class="track"
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label="Moment"
      aria-valuemin={begin}
      aria-valuemax={Math.max(begin, end - 1)}
      aria-valuenow={at}
      aria-valuetext={`event ${at} of ${end - 1}, ${formatClock(store.rows.time(at))}`}
      onPointerDown={(event) => {
        to(event.clientX);
        followPointer(event, (moved) => to(moved.clientX));
      }}
    >
      <svg width={width} height={44} aria-hidden="true">
        <rect class="base" x="0" y="33" width={width} height="5" rx="1" />
        <path class="own" d={strip} />
        {ticks.map(([hue, path]) => (
          <path class={`ticks h-${hue}`} d={path} key={hue} />
        ))}
        <rect class="veil" x={x} y="0" width={Math.max(0, width - x)} height="44" />
        <path class="needle" d={`M${x} 6v34`} />
        <circle class="knob" cx={x} cy="39" r="4.5" />
      </svg>
    </div>
  );
}

/** Worse tones are higher, so that they are not shown by colour alone. */
const HEIGHTS: Readonly<Record<string, number>> = { waiting: 6, invalid: 8, denied: 12, failed: 15 };
const COLUMN = 2;

/** One path for each colour: each column of pixels shows the worst of its entries. */
function markedTicks({ rows }: Store, width: number): readonly (readonly [hue: Hue, path: string])[] {
  const paths = new Map<Hue, string>();
  const all = rows.end - rows.begin;
  const columns = Math.floor(width / COLUMN);
  for (let column = 0; column < columns; column += 1) {
    const from = Math.floor((column / columns) * all);
    const to = Math.max(from + 1, Math.floor(((column + 1) / columns) * all));
    if (from === Math.floor(((column - 1) / columns) * all)) continue;
    const worst = rows.worstTone(rows.begin + from, rows.begin + Math.min(all, to));
    if (worst < FIRST_MARKED) continue;
    const hue = hueOf(toneAt(worst));
    const height = HEIGHTS[hue] ?? 8;
    paths.set(hue, `${paths.get(hue) ?? ''}M${column * COLUMN + 1} 30v-${height}`);
  }
  return [...paths];
}

/** The ranges of columns with entries of the run. */
function runStrip({ rows }: Store, run: Run | null, width: number): string {
  if (run === null || width === 0) return '';
  const all = Math.max(1, rows.end - rows.begin);
  let path = '';
  let until = -1;
  for (let column = 0; column < width; column += 1) {
    const from = rows.begin + Math.floor((column / width) * all);
    const to = rows.begin + Math.max(Math.floor(((column + 1) / width) * all), Math.floor((column / width) * all) + 1);
    if (run.rows.countBelow(to) === run.rows.countBelow(from)) continue;
    path += column === until ? 'h1' : `M${column} 35.5h1`;
    until = column + 1;
  }
  return path;
}
