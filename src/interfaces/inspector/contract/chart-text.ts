// The texts of a chart and the room they take. The layout and the page use the same figures. Fonts are monospaced, so
// the width of a text follows from its length.

import type { ChartEdge, ChartNode } from '../../../core/contract/inspection/inspection.js';
import { RUN_STATES } from '../../../core/contract/run/run-context.js';

/** In pixels. State names are 12 px, edge labels 11 px. */
export const CHART_METRICS = {
  nameFont: 12,
  nameAdvance: 7.25,
  labelFont: 11,
  labelAdvance: 6.65,
  /** Line height of a label. */
  labelLine: 14,
  nodeHeight: 28,
  nodePadding: 16,
  /** Width of the icon before the name of a lifecycle state. */
  iconWidth: 19,
  /** Distance from the top of a frame to its content. */
  titleHeight: 28,
  framePadding: 12,
} as const;

/** The label of an edge: its event, if it waits for one, and its guard in brackets. */
export const edgeLabel = ({ event, guard }: ChartEdge): { readonly event: string; readonly guard: string } => ({
  event: event === 'always' ? '' : event,
  guard: guard === null ? '' : `[${guard}]`,
});

export const labelText = (edge: ChartEdge): string => {
  const { event, guard } = edgeLabel(edge);
  return event === '' || guard === '' ? event + guard : `${event} ${guard}`;
};

/** Whether a state is a state of the run lifecycle: a top-level state with such a name. It is drawn with an icon. */
export const isLifecycleState = ({ parent, name }: ChartNode): boolean =>
  parent === '' && (RUN_STATES as readonly string[]).includes(name);

export const nodeWidth = (node: ChartNode): number =>
  Math.ceil(node.name.length * CHART_METRICS.nameAdvance) +
  2 * CHART_METRICS.nodePadding +
  (isLifecycleState(node) ? CHART_METRICS.iconWidth : 0);

export const labelWidth = (edge: ChartEdge): number =>
  Math.ceil(labelText(edge).length * CHART_METRICS.labelAdvance) + 8;

/** The width that the title of a frame needs. */
export const titleWidth = ({ name }: ChartNode): number =>
  Math.ceil(name.length * CHART_METRICS.nameAdvance) + 2 * CHART_METRICS.framePadding;
