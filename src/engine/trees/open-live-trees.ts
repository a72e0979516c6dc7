import type { EngineParts } from '../tree-engine.js';
import { LIVE_TREES_MAX, LiveTrees, type LiveTreesOptions } from './live-trees.js';
import { SNAPSHOT_ENTRIES } from './snapshots.js';

/** The trees of an engine. @param treeLengths see `LiveTreesOptions` */
export function openLiveTrees(parts: EngineParts, treeLengths: LiveTreesOptions['treeLengths']): LiveTrees {
  const { store, liveTreesMax = LIVE_TREES_MAX, snapshotEntries = SNAPSHOT_ENTRIES, interpretation } = parts;
  return new LiveTrees(store, liveTreesMax, snapshotEntries, {
    onEvict: (tree) => parts.commitObserver?.onEvict(tree),
    ...{ interpretation, key: parts.secrets },
    treeLengths,
    observer: parts.tickObserver,
  });
}
