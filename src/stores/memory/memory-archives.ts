import { artifactRef } from '../../core/contract/artifact-ref.js';
import type { ArchivedPart } from '../../core/ledger/readable-ledger.js';
import type { ArchiveTable, ArchiveRemoval } from '../../engine/ports/ledger/archives.js';
import type { StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { scopedKey } from './memory-keys.js';
import type { MemoryTree } from './memory-tree.js';
import {
  archivedContentError,
  archivedEntryError,
  archivedTreeError,
  straddlingError,
  writerReplacedError,
} from '../ledger/store-errors.js';

/** The parts of the state from which archiving removes entries. */
interface ArchivableState {
  readonly log: Map<number, StoredEntry>;
  readonly trees: Map<string, MemoryTree>;
  readonly contents: Map<string, Uint8Array>;
}

/** The archived prefixes of a ledger in memory. */
export class MemoryArchives {
  readonly parts: ArchivedPart[] = [];
  readonly trees = new Map<string, number>();
  readonly #cases = new Set<string>();

  get size(): number {
    return this.parts.at(-1)?.size ?? 0;
  }

  remove({ part, trees, cases }: ArchiveRemoval, state: ArchivableState): void {
    const removedTrees = new Set(trees.map(({ tree_id }) => tree_id));
    for (const { tree_id, entries } of state.trees.values()) {
      for (const { log_index } of entries) {
        if ((log_index ?? Infinity) < part.size !== removedTrees.has(tree_id))
          throw straddlingError(part.size, tree_id);
      }
    }
    for (let log_index = this.size; log_index < part.size; log_index += 1) state.log.delete(log_index);
    for (const { tree_id } of trees) state.trees.delete(tree_id);
    const attached = [...state.trees.values()].flatMap((tree) => [...tree.attachedArtifacts.values()].flat());
    const retained = new Set(
      attached.map((artifact) => scopedKey(artifact.case_id, artifactRef(artifact).hash_sha256)),
    );
    for (const key of state.contents.keys()) if (!retained.has(key)) state.contents.delete(key);
    this.parts.push({ ...part, frontier: [...part.frontier] });
    for (const { tree_id, entries } of trees) this.trees.set(tree_id, entries);
    for (const case_id of cases) this.#cases.add(case_id);
  }

  hasCase(case_id: string): boolean {
    return this.#cases.has(case_id);
  }

  /** @throws LedgerError LEDGER_ARCHIVED, like `refuseTree` and `refuseContent` */
  refuseEntry(log_index: number): void {
    if (log_index < this.size) throw archivedEntryError(log_index, this.size);
  }

  refuseTree(tree_id: string): void {
    if (this.trees.has(tree_id)) throw archivedTreeError(tree_id);
  }

  refuseContent(case_id: string | null, sha256: string): void {
    if (case_id === null ? this.size > 0 : this.hasCase(case_id)) throw archivedContentError(sha256);
  }
}

type ArchiveRemover = (removal: ArchiveRemoval) => number | null;

/** The archive table of a store. @param withArchives runs `work` with the archives and the function that removes */
export const memoryArchiveTable = (
  withArchives: <T>(work: (archives: MemoryArchives, remove: ArchiveRemover) => T) => Promise<T>,
): ArchiveTable => ({
  parts: () => withArchives(({ parts }) => [...parts]),
  tree: (tree_id) => withArchives(({ trees }) => trees.get(tree_id) ?? null),
  treeCount: () => withArchives(({ trees }) => trees.size),
  hasCase: (case_id) => withArchives((archives) => archives.hasCase(case_id)),
  remove: (removal) =>
    withArchives((_archives, remove) => {
      const epoch = remove(removal);
      if (epoch === null) throw writerReplacedError(`epoch ${removal.epoch} is over`);
      return epoch;
    }),
  tidy: () => Promise.resolve(),
});
