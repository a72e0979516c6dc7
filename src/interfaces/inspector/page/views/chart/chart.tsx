// A statechart, drawn from positions that the service or the build has computed.

import { signal } from '@preact/signals';
import type { Box, Chart, ChartLine, ChartNode, Layout } from '../../../../../core/contract/inspection/inspection.js';
import { RUN_STATES } from '../../../../../core/contract/run/run-context.js';
import { CHART_METRICS, isLifecycleState, edgeLabel, labelWidth } from '../../../contract/chart-text.js';
import { toneShape } from '../common/icons.js';
import { followPointer, useSize } from '../common/use-size.js';
import { hueOf } from '../../store/rows/tones.js';
import type { Drawing } from './drawing.js';

const MARGIN = 20;
/** The height of the line below the chart: its definition, and the buttons of its size. */
const FOOT = 28;
const LARGEST = 1.2;

interface ChartProps {
  readonly drawing: Drawing;
  readonly label: string;
}

export function ChartView({ drawing, label }: ChartProps) {
  const { box, ...size } = useSize();
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
  const lines = [...layout.lines].sort((a, b) => Number(isTaken(a.edges)) - Number(isTaken(b.edges)));
  const boxes = (ofGroups: boolean) =>
    layout.boxes
      .filter(({ id }) => id !== '' && isGroup(id) === ofGroups)
      .map((place) => <NodeBox place={place} drawing={drawing} key={place.id} />);
  return (
    <>
      {boxes(true)}
      {lines.map((line) => (
        <EdgeLine line={line} drawing={drawing} key={line.edges[0]} />
      ))}
      {boxes(false)}
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
  currentTarget.classList.add('grabbed');
  followPointer(
    event,
    (moved) => {
      panBy(moved.clientX - x, moved.clientY - y);
      [x, y] = [moved.clientX, moved.clientY];
    },
    () => currentTarget.classList.remove('grabbed'),
  );
}

/** The zoom of the chart, as a factor of the fitting size, and its offset. */
interface Zoom {
  readonly factor: number;
  readonly x: number;
  readonly y: number;
}
const FITTED_ZOOM: Zoom = { factor: 1, x: 0, y: 0 };
const STEP = 1.25;

const zoomState = signal<Zoom>(FITTED_ZOOM);

export function applyZoomKey(key: string): void {
  if (key === '0') zoomState.value = FITTED_ZOOM;
  else zoomBy(key === '-' ? 1 / STEP : STEP);
}

/** Zooms about a point, relative to the middle of the chart. */
function zoomBy(times: number, px = 0, py = 0): void {
  const { factor, x, y } = zoomState.value;
  const next = Math.min(8, Math.max(0.25, factor * times));
  const grown = next / factor;
  zoomState.value = { factor: next, x: px - (px - x) * grown, y: py - (py - y) * grown };
}

function panBy(dx: number, dy: number): void {
  const { factor, x, y } = zoomState.value;
  zoomState.value = { factor, x: x + dx, y: y + dy };
}

const RADIUS = 7;
const GROUP_RADIUS = 10;

interface NodeProps {
  readonly place: Box;
  readonly drawing: Drawing;
}

function NodeBox({ place: { id, x, y, width, height }, drawing }: NodeProps) {
  const node = drawing.index.nodes.get(id);
  if (node === undefined) return null;
  const group = drawing.index.childrenOf(id).length > 0;
  const radius = group ? GROUP_RADIUS : RADIUS;
  const times = drawing.entered.get(id) ?? 0;
  const rect = { x, y, width, height, rx: radius };
  return (
    <g class={nodeClass(node, drawing, group)} data-state={id}>
      <title>{nodeTitle(node, times, drawing.active.has(id))}</title>
      {drawing.active.has(id) && !group && <rect class="halo" {...growRect(rect, 3)} />}
      <rect class="box" {...rect} />
      {node.type === 'final' && <rect class="inner" {...growRect(rect, -3)} />}
      {isInitial(node, drawing) && <InitialMarker x={x} y={group ? y + 14 : y + height / 2} />}
      <NodeName node={node} group={group} place={{ id, x, y, width, height }} />
      {!group && times > 1 && <TransitionCount times={times} x={x + width} y={y} />}
    </g>
  );
}

function nodeClass({ id, type }: ChartNode, { active, states, sides }: Drawing, group: boolean): string {
  const hue = states.get(id);
  const side = sides?.states.get(id);
  return [
    group ? 'group' : 'state',
    type,
    hue === undefined ? 'never' : `visited h-${hue}`,
    active.has(id) ? 'active' : '',
    side === undefined ? '' : `side-${side}`,
  ].join(' ');
}

interface NameProps {
  readonly node: ChartNode;
  readonly place: Box;
  readonly group: boolean;
}

function NodeName({ node, group, place: { x, y, width, height } }: NameProps) {
  if (group) {
    return (
      <text class="name" x={x + 10} y={y + 17}>
        {node.name}
      </text>
    );
  }
  const state = isLifecycleState(node) ? RUN_STATES.find((name) => name === node.name) : undefined;
  const middle = x + width / 2 + (state === undefined ? 0 : CHART_METRICS.iconWidth / 2);
  return (
    <>
      {state !== undefined && (
        <g class={`icon h-${hueOf(state)}`} transform={`translate(${x + 10} ${y + height / 2 - 7}) scale(0.875)`}>
          {toneShape(state)}
        </g>
      )}
      <text class="name" x={middle} y={y + height / 2 + 4} text-anchor="middle">
        {node.name}
      </text>
    </>
  );
}

const isInitial = (node: ChartNode, { index }: Drawing): boolean => {
  const parent = node.parent === null ? undefined : index.nodes.get(node.parent);
  return parent !== undefined && parent.initial === node.id;
};

const InitialMarker = ({ x, y }: { readonly x: number; readonly y: number }) => (
  <g class="initial">
    <circle cx={x - 15} cy={y - 8} r="3" />
    <path d={`M${x - 15} ${y - 6}q1 6 8 6`} />
    <path class="head" d={`M${x - 1} ${y}l-7-3v6z`} />
  </g>
);

function TransitionCount({ times, x, y }: { readonly times: number; readonly x: number; readonly y: number }) {
  const text = `×${times}`;
  const width = 8 + text.length * 6.4;
  return (
    <g class="times">
      <rect x={x - width / 2 - 2} y={y - 8} width={width} height="16" rx="8" />
      <text x={x - 2} y={y + 3.5} text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

const growRect = (rect: { x: number; y: number; width: number; height: number; rx: number }, by: number) => ({
  x: rect.x - by,
  y: rect.y - by,
  width: rect.width + 2 * by,
  height: rect.height + 2 * by,
  rx: Math.max(2, rect.rx + by),
});

function nodeTitle(node: ChartNode, times: number, active: boolean): string {
  const entry = node.entry.length === 0 ? '' : `\non entry: ${node.entry.join(', ')}`;
  return `${node.id}${active ? ', active' : ''}${times > 0 ? `, entered ${times} times` : ''}${entry}`;
}

interface LineProps {
  readonly line: ChartLine;
  readonly drawing: Drawing;
}

/** The edge of a line that determines how the line is drawn: the last one taken, otherwise any that was taken. */
const drawnEdgeOf = ({ edges }: ChartLine, { taken, last }: Drawing): string | null =>
  edges.find((edge) => edge === last) ?? edges.find((edge) => taken.has(edge)) ?? null;

function EdgeLine({ line, drawing }: LineProps) {
  const taken = drawnEdgeOf(line, drawing);
  const side = sideOf(line, drawing);
  const hue = taken === null ? undefined : drawing.taken.get(taken);
  const kind = taken === null ? 'never' : `taken h-${hue ?? 'plain'}`;
  const last = taken !== null && taken === drawing.last ? ' last' : '';
  return (
    <g class={`edge ${kind}${last}${side === null ? '' : ` side-${side}`}`}>
      <path class="line" d={roundedPath(line.points)} />
      <path class="head" d={arrowHead(line.points)} />
    </g>
  );
}

/** A line with edges of both sides belongs to both. */
function sideOf({ edges }: ChartLine, { sides }: Drawing) {
  const found = new Set(edges.map((edge) => sides?.edges.get(edge)).filter((side) => side !== undefined));
  const [side] = found;
  return side === undefined ? null : found.size > 1 ? 'both' : side;
}

type Point = readonly [x: number, y: number];

/** Rounded corners; the last piece is slightly shorter, for the arrowhead. */
function roundedPath(points: readonly Point[]): string {
  const [first = [0, 0], ...rest] = points;
  let path = `M${first[0]} ${first[1]}`;
  rest.forEach(([x, y], at) => {
    const [px, py] = points[at] ?? first;
    const next = rest[at + 1];
    const length = Math.hypot(x - px, y - py);
    if (next === undefined) {
      const cut = length > 6 ? 5 / length : 0;
      path += `L${x - (x - px) * cut} ${y - (y - py) * cut}`;
      return;
    }
    const on = Math.hypot(next[0] - x, next[1] - y);
    const radius = Math.min(6, length / 2, on / 2);
    const [a, b] = [radius / (length || 1), radius / (on || 1)];
    path += `L${x - (x - px) * a} ${y - (y - py) * a}Q${x} ${y} ${x + (next[0] - x) * b} ${y + (next[1] - y) * b}`;
  });
  return path;
}

function arrowHead(points: readonly Point[]): string {
  const [x, y] = points.at(-1) ?? [0, 0];
  const [px, py] = points.at(-2) ?? [x, y - 1];
  const length = Math.hypot(x - px, y - py) || 1;
  const [dx, dy] = [(x - px) / length, (y - py) / length];
  return `M${x} ${y}L${x - dx * 8 - dy * 3.6} ${y - dy * 8 + dx * 3.6}L${x - dx * 8 + dy * 3.6} ${y - dy * 8 - dx * 3.6}Z`;
}

function LineLabels({ line, drawing }: LineProps) {
  return (
    <>
      {line.labels.map(({ edge, x, y }) => {
        const label = drawing.index.edges.get(edge);
        if (label === undefined) return null;
        const hue = drawing.taken.get(edge);
        const side = drawing.sides?.edges.get(edge);
        const { event, guard } = edgeLabel(label);
        if (event === '' && guard === '') return null;
        const width = labelWidth(label);
        return (
          <g
            class={`label ${hue === undefined ? 'never' : `taken h-${hue}`}${side === undefined ? '' : ` side-${side}`}`}
            key={edge}
          >
            {label.actions.length > 0 && <title>{`does: ${label.actions.join(', ')}`}</title>}
            <rect x={x - width / 2} y={y - 7.5} width={width} height="15" rx="3" />
            <text x={x} y={y + 4} text-anchor="middle">
              {event}
              {guard !== '' && <tspan class="guard">{event === '' ? guard : ` ${guard}`}</tspan>}
            </text>
          </g>
        );
      })}
    </>
  );
}
