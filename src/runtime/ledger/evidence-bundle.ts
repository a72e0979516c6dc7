import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import type { Checkpoint } from '../../core/ledger/proof/checkpoint.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import type { EntryPlace, LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';

/** The ledger of a bundle. */
export interface EvidenceBundle {
  readonly key: NoteVerifier;
  readonly checkpoint: Checkpoint;
  /** The history of its own key. */
  readonly keys: readonly string[];
  /** The signed note that contains the checkpoint. */
  readonly note: string;
  /** Where its entries begin: earlier entries are in another bundle. */
  readonly begin: LogHead;
  readonly log: (from?: number) => AsyncIterable<StoredEntry>;
  readonly tree: (tree_id: string, fromSeq?: number) => AsyncIterable<StoredEntry>;
  readonly hasTree: (tree_id: string) => boolean;
  /** In the order of their first entries, each with the log index of that entry. */
  readonly trees: () => readonly { readonly tree_id: string; readonly log_index: number }[];
  readonly artifactsOf: (place: EntryPlace) => Promise<readonly StoredArtifact[]>;
  readonly head: () => Promise<LogHead>;
  /** The number of entries of the log, including those before the bundle's first. */
  readonly size: () => Promise<number>;
}
