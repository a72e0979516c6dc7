// Checks the position of entries: in the log by index; in their tree by seq and by the hash of the previous entry. The
// kind of a gap is known only later: if the missing entry appears, it was moved and not removed.

import { nameInLedger, nameInTree } from '../../contract/entry-name.js';
import { NO_PREV } from '../../contract/run/entry.js';
import type { StoredEntry } from '../readable-ledger.js';
import type { CheckedEntry } from './check-entry.js';
import { WHOLE_LOG, type LedgerFinding, type PlacedFinding } from './ledger-problem.js';

/** Maximum number of gaps that are remembered per sequence. */
const GAPS_MAX = 1_000;

interface Gap {
  readonly from: number;
  readonly to: number;
  readonly finding: LedgerFinding;
}

/** Positions that must occur in order: of the log, or of one tree. */
class PlaceSequence {
  /** The position after the last one that occurred in order. */
  next: number;
  #lastHash = '';
  #gaps: Gap[] = [];

  constructor(first = 0) {
    this.next = first;
  }

  /** @returns null if `place` is the next one */
  take(place: number, hash: string, createFinding: (missing: boolean) => LedgerFinding): LedgerFinding | null {
    if (place === this.next) {
      this.#advance(place, hash);
      return null;
    }
    const finding = createFinding(place > this.next);
    if (place > this.next) {
      if (this.#gaps.length < GAPS_MAX) this.#gaps.push({ from: this.next, to: place, finding });
      this.#advance(place, hash);
      return finding;
    }
    const gap = this.#gaps.find(({ from, to }) => place >= from && place < to);
    if (gap === undefined) {
      // The position is already taken, by the same entry or by another.
      finding.kind = place < this.next - 1 || hash === this.#lastHash ? 'duplicated' : 'inserted';
      return finding;
    }
    gap.finding.kind = 'reordered';
    finding.kind = 'reordered';
    const rest = [
      { ...gap, to: place },
      { ...gap, from: place + 1 },
    ];
    this.#gaps = [...this.#gaps.filter((other) => other !== gap), ...rest.filter(({ from, to }) => from < to)];
    return finding;
  }

  #advance(place: number, hash: string): void {
    this.next = place + 1;
    this.#lastHash = hash;
  }
}

interface TreeEnd {
  readonly sequence: PlaceSequence;
  /** What the next entry may name as its predecessor: the hash of the last entry, both computed and stored. */
  hashes: readonly string[];
}

/** Takes the entries of a log in order. Memory grows with the number of trees and of gaps. */
export class OrderCheck {
  readonly #log: PlaceSequence;
  readonly #trees = new Map<string, TreeEnd>();

  /** @param first the index of the first entry */
  constructor(first = 0) {
    this.#log = new PlaceSequence(first);
  }

  get trees(): number {
    return this.#trees.size;
  }

  /** The index up to which the log has been read. */
  get next(): number {
    return this.#log.next;
  }

  *take(stored: StoredEntry, checked: CheckedEntry): Iterable<PlacedFinding> {
    const { log_index, tree_id, seq } = stored;
    const expected = this.#log.next;
    const gap = this.#log.take(log_index, stored.leaf_hash, (missing) => ({
      rule: 'log.gap',
      message: missing
        ? `entry ${nameInLedger(expected)} is missing: ${nameInLedger(log_index)} comes next`
        : `entry ${nameInLedger(log_index)} comes after ${nameInLedger(expected - 1)}`,
    }));
    if (gap !== null) yield { place: { ...WHOLE_LOG, log_index: Math.min(expected, log_index) }, finding: gap };
    for (const finding of this.#checkInTree(stored, checked)) yield { place: { log_index, tree_id, seq }, finding };
  }

  /** Checks an entry against the one before it in its tree, and remembers it as the tree's last. */
  *#checkInTree(stored: StoredEntry, { envelope, leaf_hash }: CheckedEntry): Iterable<LedgerFinding> {
    // If only the text or only the columns were changed, the other one gives the position, so that one changed entry is
    // not reported as a broken tree.
    const { tree_id, seq } = envelope !== null && leaf_hash === stored.leaf_hash ? envelope : stored;
    const end = this.#trees.get(tree_id) ?? { sequence: new PlaceSequence(), hashes: [NO_PREV] };
    this.#trees.set(tree_id, end);
    const expected = end.sequence.next;
    const hashes = [leaf_hash, stored.leaf_hash];
    const finding = end.sequence.take(seq, leaf_hash, (missing) => ({
      rule: 'tree.seq',
      message: missing
        ? `entry ${nameInTree(tree_id, expected)} is missing: ${nameInTree(tree_id, seq)} comes next`
        : `entry ${nameInTree(tree_id, seq)} comes after ${nameInTree(tree_id, expected - 1)}`,
    }));
    if (finding !== null) yield finding;
    if (seq < expected) {
      // If two entries share a position, the next one may follow either; its `prev` tells which was first.
      if (seq === expected - 1) end.hashes = [...end.hashes, ...hashes].slice(-4);
      return;
    }
    if (finding === null && envelope !== null && !end.hashes.includes(envelope.prev)) {
      const message = 'prev is not the leaf hash of the entry before it in the tree: one of the two was changed';
      yield { rule: 'tree.prev', message };
    }
    end.hashes = hashes;
  }
}
