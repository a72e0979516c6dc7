import { LedgerError } from '../../core/errors.js';
import type { RecordedTree } from '../../core/ledger/readable-ledger.js';
import type { EndedTree, RecordBatch } from '../../engine/ports/ledger/run-record-table.js';

/** The run records of a ledger in memory. */
export class MemoryRunRecords {
  /** By tree: the ordinal number of its end. */
  readonly #unrecorded = new Map<string, number>();
  #ends = 0;
  readonly #trees = new Map<string, number>();
  /** By tree and run. */
  readonly #records = new Map<string, Map<string, string>>();

  /** Adds a tree that has ended. Called once for each tree. */
  addEndedTree(tree_id: string): void {
    this.#unrecorded.set(tree_id, (this.#ends += 1));
  }

  unrecorded(): readonly EndedTree[] {
    return [...this.#unrecorded].map(([tree_id, place]) => ({ tree_id, place }));
  }

  /** The same for one of several workers: trees that another one has recorded stay as they are. */
  saveFirst({ records, trees }: RecordBatch): void {
    const isFirst = ({ tree_id }: { readonly tree_id: string }): boolean => !this.#trees.has(tree_id);
    this.save({ records: records.filter(isFirst), trees: trees.filter(isFirst) });
  }

  /** @throws LedgerError LEDGER_UNAVAILABLE, with nothing written, if a tree is recorded already */
  save({ records, trees }: RecordBatch): void {
    for (const { tree_id } of [...records, ...trees]) {
      if (!this.#trees.has(tree_id)) continue;
      throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the records of a tree never change' });
    }
    for (const { tree_id, run_id, text } of records) {
      const known = this.#records.get(tree_id) ?? new Map<string, string>();
      this.#records.set(tree_id, known.set(run_id, text));
    }
    for (const { tree_id, seq } of trees) {
      this.#trees.set(tree_id, seq);
      this.#unrecorded.delete(tree_id);
    }
  }

  trees(): readonly RecordedTree[] {
    return [...this.#trees].map(([tree_id, seq]) => ({ tree_id, seq }));
  }

  recorded(tree_id: string): number | null {
    return this.#trees.get(tree_id) ?? null;
  }

  load(tree_id: string, run_id: string): string | null {
    return this.#records.get(tree_id)?.get(run_id) ?? null;
  }

  count(tree_id: string): number {
    return this.#records.get(tree_id)?.size ?? 0;
  }
}
