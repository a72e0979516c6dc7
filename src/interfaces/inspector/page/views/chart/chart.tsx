// A statechart, drawn from positions that the service or the build has computed.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Layout } from '../../../../../core/contract/inspection/inspection.js';
import { zoomBy, panBy, applyZoomKey, zoomState } from './chart-zoom.js';
import { EdgeLine, LineLabels, NodeBox } from './chart-parts.js';
import type { Drawing } from './drawing.js';
import type { Chart } from '../../../../../core/contract/inspection/inspection.js';

const MARGIN = 20;
/** The height of the line below the chart: its definition, and the buttons of its size. */
const FOOT = 28;
const LARGEST = 1.2;

interface ChartProps {
  readonly drawing: Drawing;
  readonly label: string;
}

export function ChartView({ drawing, label }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const see = (): void => setSize({ width: current.clientWidth, height: current.clientHeight });
    const watch = new ResizeObserver(see);
    watch.observe(current);
    see();
    return () => watch.disconnect();
  }, []);
  const { layout, scale } = chooseLayout(drawing.index.chart, size);
  const shown = scale * zoomState.value.factor;
  const x = (size.width - layout.width * shown) / 2 + zoomState.value.x;
  const y = (size.height - FOOT - layout.height * shown) / 2 + zoomState.value.y;
  return (
    <div class="chart" ref={box} onWheel={onWheel} onPointerDown={onPointerDown}>
      {size.width > 0 && (
        <svg width={size.width} height={size.height} role="img" aria-label={label}>
          <g transform={`translate(${x} ${y}) scale(${shown})`}>
            <ChartDrawing layout={layout} drawing={drawing} />
          </g>
        </svg>
      )}
      <div class="zoom" role="group" aria-label="Size of the chart">
        <button type="button" aria-label="Smaller" onClick={() => applyZoomKey('-')}>
          −
        </button>
        <button
          type="button"
          aria-label={`${Math.round(shown * 100)}%, fit`}
          title="Fit (0)"
          onClick={() => applyZoomKey('0')}
        >
          {`${Math.round(shown * 100)}%`}
        </button>
        <button type="button" aria-label="Larger" onClick={() => applyZoomKey('+')}>
          +
        </button>
      </div>
    </div>
  );
}

/** The direction in which the chart can be drawn larger. */
function chooseLayout({ layouts }: Chart, { width, height }: { readonly width: number; readonly height: number }) {
  const scaleOf = (layout: Layout): number =>
    Math.min(LARGEST, (width - 2 * MARGIN) / layout.width, (height - FOOT - 2 * MARGIN) / layout.height);
  const [down, right] = [scaleOf(layouts.down), scaleOf(layouts.right)];
  const layout = right > down * 1.05 ? layouts.right : layouts.down;
  return { layout, scale: Math.max(0.05, scaleOf(layout)) };
}

function ChartDrawing({ layout, drawing }: { readonly layout: Layout; readonly drawing: Drawing }) {
  const isGroup = (id: string): boolean => drawing.index.childrenOf(id).length > 0;
  const isTaken = (edges: readonly string[]): boolean => edges.some((edge) => drawing.taken.has(edge));
  const boxes = layout.boxes.filter(({ id }) => id !== '');
  const lines = [...layout.lines].sort((a, b) => Number(isTaken(a.edges)) - Number(isTaken(b.edges)));
  return (
    <>
      {boxes
        .filter(({ id }) => isGroup(id))
        .map((place) => (
          <NodeBox place={place} drawing={drawing} key={place.id} />
        ))}
      {lines.map((line) => (
        <EdgeLine line={line} drawing={drawing} key={line.edges[0]} />
      ))}
      {boxes
        .filter(({ id }) => !isGroup(id))
        .map((place) => (
          <NodeBox place={place} drawing={drawing} key={place.id} />
        ))}
      {lines.map((line) => (
        <LineLabels line={line} drawing={drawing} key={line.edges[0]} />
      ))}
    </>
  );
}

function onWheel(event: WheelEvent): void {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const { currentTarget, offsetX, offsetY } = event as WheelEvent & { currentTarget: HTMLElement };
  zoomBy(
    event.deltaY < 0 ? 1.1 : 1 / 1.1,
    offsetX - currentTarget.clientWidth / 2,
    offsetY - (currentTarget.clientHeight - FOOT) / 2,
  );
}

function onPointerDown(event: PointerEvent & { readonly currentTarget: HTMLElement }): void {
  if (event.button !== 0 || (event.target instanceof Element && event.target.closest('button') !== null)) return;
  const { currentTarget } = event;
  let [x, y] = [event.clientX, event.clientY];
  const move = (moved: PointerEvent): void => {
    panBy(moved.clientX - x, moved.clientY - y);
    [x, y] = [moved.clientX, moved.clientY];
  };
  const end = (): void => {
    currentTarget.removeEventListener('pointermove', move);
    currentTarget.classList.remove('grabbed');
  };
  currentTarget.setPointerCapture(event.pointerId);
  currentTarget.classList.add('grabbed');
  currentTarget.addEventListener('pointermove', move);
  currentTarget.addEventListener('pointerup', end, { once: true });
  currentTarget.addEventListener('pointercancel', end, { once: true });
}
