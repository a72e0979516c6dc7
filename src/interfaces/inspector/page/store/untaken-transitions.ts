// The transitions that a machine could have taken at the cursor and did not take.

import type { ChartEdge } from '../../../../core/contract/inspection/inspection.js';
import type { Path } from './path.js';

export interface UntakenTransition {
  readonly edge: ChartEdge;
  /** Whether its event occurred and another transition was taken: then its guard failed, or an earlier one held. */
  readonly hasEventOccurred: boolean;
}

/** Every edge out of the active states of a path at the cursor, except the one that it took next. */
export function findUntakenTransitions(path: Path): readonly UntakenTransition[] {
  const next = path.moves[path.movesMade];
  const taken = path.index.edges.get(path.edgeOf(next));
  const found = path.index.chart.edges.filter(({ id, source }) => {
    const isActive = source === '' ? path.active.size > 0 : path.active.has(source);
    return isActive && id !== taken?.id;
  });
  const all = found.map((edge) => ({
    edge,
    hasEventOccurred: edge.event === taken?.event && edge.source === taken.source,
  }));
  // Transitions that were tried come first.
  return [
    ...all.filter(({ hasEventOccurred }) => hasEventOccurred),
    ...all.filter(({ hasEventOccurred }) => !hasEventOccurred),
  ];
}
