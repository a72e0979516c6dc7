// Why not: the ways on that a machine had where it stands at the cursor, and did not take.

import type { ChartEdge } from '../../contract/inspection.js';
import type { Path } from './path.js';

export interface Untaken {
  readonly edge: ChartEdge;
  /** Whether its event came and another way was taken: then its guard did not hold, or one before it did. */
  readonly came: boolean;
}

/** Of a path at the cursor: every edge out of where it stands but the one that it took next. */
export function untaken(path: Path): readonly Untaken[] {
  const next = path.moves[path.made];
  const taken = path.index.edges.get(path.edgeOf(next));
  const found = path.index.chart.edges.filter(({ id, source }) => {
    const stands = source === '' ? path.active.size > 0 : path.active.has(source);
    return stands && id !== taken?.id;
  });
  const all = found.map((edge) => ({ edge, came: edge.event === taken?.event && edge.source === taken.source }));
  // What was tried comes first.
  return [...all.filter(({ came }) => came), ...all.filter(({ came }) => !came)];
}
