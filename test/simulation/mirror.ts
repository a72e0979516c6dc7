import type { MemoryState } from '../../src/adapters/memory-state.js';
import { NO_PREV, type Entry, type SealedEntry } from '../../src/contract/entry.js';
import { EMPTY_HEAD, extend } from '../../src/ledger/merkle.js';
import { sealEntry } from '../../src/ledger/seal-entry.js';
import type { Batch, LogHead } from '../../src/ports/ledger-store.js';

interface End {
  readonly seq: number;
  readonly prev: string;
}

/**
 * A second disk on which the same batches are told with changed or left out entries, sealed again, so that places,
 * chains and the Merkle tree all fit: nothing but the meaning of the entries can show what was done.
 */
export class Mirror {
  readonly #disk: MemoryState;
  readonly #rewrite: (entry: Entry) => Entry | null;
  readonly #epoch: number;
  readonly #ends = new Map<string, End>();
  #head: LogHead = EMPTY_HEAD;

  constructor(disk: MemoryState, rewrite: (entry: Entry) => Entry | null) {
    this.#disk = disk;
    this.#rewrite = rewrite;
    this.#epoch = disk.lock(this);
  }

  tell(batch: Batch): void {
    const entries: SealedEntry[] = [];
    const places = batch.entries.map(({ entry }) => {
      const told = this.#rewrite(entry);
      return told === null ? null : entries.push(this.#seal(told)) - 1;
    });
    const artifacts = batch.artifacts.flatMap((brought) => {
      const place = places[brought.entry] ?? null;
      return place === null ? [] : [{ ...brought, entry: place }];
    });
    const head = extend(
      this.#head,
      entries.map(({ leaf_hash }) => leaf_hash),
    );
    const { trees } = batch;
    const from = this.#head.size;
    this.#disk.commit({ epoch: this.#epoch, from, entries, artifacts, proposals: [], inputs: [], trees, head });
    this.#head = head;
  }

  #seal(entry: Entry): SealedEntry {
    const { tree_id } = entry;
    const { seq, prev } = this.#ends.get(tree_id) ?? { seq: 0, prev: NO_PREV };
    const place = { tree_id, seq, prev };
    const sealed =
      entry.type === 'audit_event'
        ? sealEntry({ ...entry, ...place, body: { ...entry.body, sequence: seq, event_id: `${tree_id}:${seq}` } })
        : sealEntry({ ...entry, ...place });
    this.#ends.set(tree_id, { seq: seq + 1, prev: sealed.leaf_hash });
    return sealed;
  }
}
