import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import type {
  StoredEntry,
  TreeAppend,
  TreeEntry,
  TreeRecoveryHint,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import { copyBytes } from './memory-keys.js';

export class MemoryTree {
  readonly tree_id: string;
  /** By seq. */
  readonly entries: TreeEntry[] = [];
  /** The artifacts attached to entries, by seq. */
  readonly attachedArtifacts = new Map<number, readonly StoredArtifact[]>();
  #case_id: string | null = null;
  #ended = false;
  #recovery: TreeRecoveryHint = { unfinished: true, wake_at: null };

  constructor(tree_id: string) {
    this.tree_id = tree_id;
  }

  /** The case for which the tree was opened. */
  get case_id(): string | null {
    return this.#case_id;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get recovery(): TreeRecoveryHint {
    return this.#recovery;
  }

  summary(): TreeSummary {
    return { tree_id: this.tree_id, ended: this.#ended, log_index: this.entries[0]?.log_index ?? null };
  }

  /** Whether the tree has exactly these entries already. */
  has({ from, entries }: TreeAppend): boolean {
    const last = this.entries[from + entries.length - 1];
    return last !== undefined && last.leaf_hash === entries.at(-1)?.leaf_hash;
  }

  append({ from, entries, artifacts, opened, ended, recoveryHint: recovery }: TreeAppend): void {
    for (const { entry, text, leaf_hash } of entries) {
      const { tree_id, seq, type } = entry;
      this.entries.push({ tree_id, seq, log_index: null, type, text, leaf_hash });
    }
    for (const { entry, artifact } of artifacts) {
      const stored = { ...artifact, bytes: copyBytes(artifact.bytes) };
      this.attachedArtifacts.set(from + entry, [...(this.attachedArtifacts.get(from + entry) ?? []), stored]);
    }
    if (opened !== null) this.#case_id = opened.case_id;
    this.#ended ||= ended;
    if (recovery !== null) this.#recovery = { ...recovery };
  }

  delayTimers(wake_at: string): void {
    this.#recovery = { ...this.#recovery, wake_at };
  }

  /** Gives `count` entries, starting at `seq`, their log indexes. @returns the entries with their log indexes */
  place(seq: number, count: number, log_index: number): readonly StoredEntry[] {
    const placed = this.entries
      .slice(seq, seq + count)
      .map((entry, at): StoredEntry => ({ ...entry, log_index: log_index + at }));
    for (const entry of placed) this.entries[entry.seq] = entry;
    return placed;
  }
}
