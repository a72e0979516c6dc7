import type { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { NO_PREV, type Entry, type SealedEntry } from '../../src/core/contract/run/entry.js';
import { sealEntry } from '../../src/core/ledger/entry-text.js';
import type { Batch, TreeAppend } from '../../src/engine/ports/ledger/ledger-store.js';

interface End {
  readonly seq: number;
  readonly prev: string;
}

/**
 * A second disk that stores the same batches with changed or omitted entries, sealed again, so that places, chains and
 * the Merkle tree all match: only the meaning of the entries can reveal the change.
 */
export class Mirror {
  readonly #disk: LedgerModel;
  readonly #rewrite: (entry: Entry) => Entry | null;
  readonly #epoch: number;
  readonly #ends = new Map<string, End>();

  constructor(disk: LedgerModel, rewrite: (entry: Entry) => Entry | null) {
    this.#disk = disk;
    this.#rewrite = rewrite;
    this.#epoch = disk.lock(this);
  }

  tell({ trees }: Batch): void {
    const rewritten = trees.map((append) => this.#rewriteAppend(append)).filter(({ entries }) => entries.length > 0);
    this.#disk.commit({ epoch: this.#epoch, trees: rewritten });
  }

  #rewriteAppend({ tree_id, entries, artifacts, ...append }: TreeAppend): TreeAppend {
    const from = this.#ends.get(tree_id)?.seq ?? 0;
    const sealed: SealedEntry[] = [];
    const places = entries.map(({ entry }) => {
      const rewritten = this.#rewrite(entry);
      return rewritten === null ? null : sealed.push(this.#seal(rewritten)) - 1;
    });
    const brought = artifacts.flatMap((one) => {
      const place = places[one.entry] ?? null;
      return place === null ? [] : [{ ...one, entry: place }];
    });
    return { ...append, tree_id, from, entries: sealed, artifacts: brought, proposals: [], inputs: [] };
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
