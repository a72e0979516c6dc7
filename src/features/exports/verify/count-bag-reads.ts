import type { BagTree } from '../../../engine/ports/bag-tree.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';

const LABEL = 'reading the bag';

/**
 * A bag that reports how many bytes were read from it. The total is that of all files once they are listed: a bag whose
 * log is verified too reads some of them twice.
 */
export function countBagReads(tree: BagTree, progress: ProgressReporter): BagTree {
  if (progress === NO_PROGRESS) return tree;
  return {
    entries: async function* () {
      progress.begin({ label: LABEL, unit: 'bytes', total: null });
      let total = 0;
      for await (const entry of tree.entries()) {
        if (entry.kind === 'file') total += entry.bytes;
        yield entry;
      }
      progress.begin({ label: LABEL, unit: 'bytes', total });
    },
    read: async function* (path) {
      for await (const piece of tree.read(path)) {
        progress.advance(piece.length);
        yield piece;
      }
    },
    close: () => tree.close(),
  };
}
