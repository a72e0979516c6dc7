import { artifactRef } from '../contract/artifact-ref.js';
import type { ArchivedPart, ArchiveTable, Archiving } from '../ports/archives.js';
import type { StoredEntry } from '../ports/ledger-store.js';
import { keyOf, replaced } from './memory-parts.js';
import type { MemoryTree } from './memory-tree.js';
import { archivedContent, archivedEntry, archivedTree, straddling } from './archived.js';

/** What a ledger in memory holds: its log by index, its trees, and contents. */
interface Held {
  readonly log: Map<number, StoredEntry>;
  readonly trees: Map<string, MemoryTree>;
  readonly contents: Map<string, Uint8Array>;
}

/** What a ledger in memory remembers of the entries that it has no more. */
export class MemoryArchives {
  readonly parts: ArchivedPart[] = [];
  readonly trees = new Map<string, number>();
  readonly #cases = new Set<string>();

  get size(): number {
    return this.parts.at(-1)?.size ?? 0;
  }

  remove({ part, trees, cases }: Archiving, held: Held): void {
    const whole = new Set(trees.map(({ tree_id }) => tree_id));
    for (const { tree_id, entries } of held.trees.values()) {
      for (const { log_index } of entries) {
        if ((log_index ?? Infinity) < part.size !== whole.has(tree_id)) throw straddling(part.size, tree_id);
      }
    }
    for (let log_index = this.size; log_index < part.size; log_index += 1) held.log.delete(log_index);
    for (const { tree_id } of trees) held.trees.delete(tree_id);
    const brought = [...held.trees.values()].flatMap((tree) => [...tree.brought.values()].flat());
    const kept = new Set(brought.map((artifact) => keyOf(artifact.case_id, artifactRef(artifact).hash_sha256)));
    for (const key of held.contents.keys()) if (!kept.has(key)) held.contents.delete(key);
    this.parts.push({ ...part, frontier: [...part.frontier] });
    for (const { tree_id, entries } of trees) this.trees.set(tree_id, entries);
    for (const case_id of cases) this.#cases.add(case_id);
  }

  hasCase(case_id: string): boolean {
    return this.#cases.has(case_id);
  }

  /** @throws LedgerError LEDGER_ARCHIVED, like the two below */
  refuse(log_index: number): void {
    if (log_index < this.size) throw archivedEntry(log_index, this.size);
  }

  refuseTree(tree_id: string): void {
    if (this.trees.has(tree_id)) throw archivedTree(tree_id);
  }

  refuseContent(case_id: string | null, sha256: string): void {
    if (case_id === null ? this.size > 0 : this.hasCase(case_id)) throw archivedContent(sha256);
  }
}

type Remove = (archiving: Archiving) => number | null;

/** The table of a store. @param answer has the state asked, with what removes from it */
export const memoryArchiveTable = (
  answer: <T>(ask: (archives: MemoryArchives, remove: Remove) => T) => Promise<T>,
): ArchiveTable => ({
  parts: () => answer(({ parts }) => [...parts]),
  tree: (tree_id) => answer(({ trees }) => trees.get(tree_id) ?? null),
  treeCount: () => answer(({ trees }) => trees.size),
  hasCase: (case_id) => answer((archives) => archives.hasCase(case_id)),
  remove: (archiving) =>
    answer((_archives, remove) => {
      const epoch = remove(archiving);
      if (epoch === null) throw replaced(`epoch ${archiving.epoch} is over`);
      return epoch;
    }),
  tidy: () => Promise.resolve(),
});
