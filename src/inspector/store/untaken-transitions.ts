// Why not: the ways on that a machine had where it stands at the cursor, and did not take.

import type { ChartEdge } from '../../contract/inspection/inspection.js';
import type { Path } from './path.js';

export interface UntakenTransition {
  readonly edge: ChartEdge;
  /** Whether its event came and another way was taken: then its guard did not hold, or one before it did. */
  readonly hasEventOccurred: boolean;
}

/** Of a path at the cursor: every edge out of where it stands but the one that it took next. */
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
  // What was tried comes first.
  return [
    ...all.filter(({ hasEventOccurred }) => hasEventOccurred),
    ...all.filter(({ hasEventOccurred }) => !hasEventOccurred),
  ];
}
