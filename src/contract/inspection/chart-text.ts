// How a chart is written, and how much room its texts take. The layout is made of these figures and the page draws by
// them: fonts are monospaced, so a text is as wide as it is long.

import type { ChartEdge, ChartNode } from './inspection.js';
import { RUN_STATES } from '../run/run-state.js';

/** Pixels. Names of states at 12 px, labels of edges at 11 px. */
export const CHART_METRICS = {
  nameFont: 12,
  nameAdvance: 7.25,
  labelFont: 11,
  labelAdvance: 6.65,
  /** From one line of a label to the next. */
  labelLine: 14,
  nodeHeight: 28,
  nodePadding: 16,
  /** Before the name of a state of the lifecycle. */
  iconWidth: 19,
  /** From the top of a frame to what is in it. */
  titleHeight: 28,
  framePadding: 12,
} as const;

/** What stands on the line of an edge: its event, if it waits for one, and its guard, which is set in brackets. */
export const edgeLabel = ({ event, guard }: ChartEdge): { readonly event: string; readonly guard: string } => ({
  event: event === 'always' ? '' : event,
  guard: guard === null ? '' : `[${guard}]`,
});

/** A label as one text. */
export const labelText = (edge: ChartEdge): string => {
  const { event, guard } = edgeLabel(edge);
  return event === '' || guard === '' ? event + guard : `${event} ${guard}`;
};

/** Whether a state is one of the lifecycle of runs: it stands at the top, has its name, and is drawn with its icon. */
export const isLifecycleState = ({ parent, name }: ChartNode): boolean =>
  parent === '' && (RUN_STATES as readonly string[]).includes(name);

export const nodeWidth = (node: ChartNode): number =>
  Math.ceil(node.name.length * CHART_METRICS.nameAdvance) +
  2 * CHART_METRICS.nodePadding +
  (isLifecycleState(node) ? CHART_METRICS.iconWidth : 0);

export const labelWidth = (edge: ChartEdge): number =>
  Math.ceil(labelText(edge).length * CHART_METRICS.labelAdvance) + 8;

/** Of a frame the room that its title takes. */
export const titleWidth = ({ name, type }: ChartNode): number =>
  Math.ceil((name.length + (type === 'parallel' ? PARALLEL.length : 0)) * CHART_METRICS.nameAdvance) +
  2 * CHART_METRICS.framePadding;
const PARALLEL = ' ∥ parallel';
