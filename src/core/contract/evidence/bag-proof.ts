// How a bag proves that its content is in the log of a ledger: the entries of the case's trees, byte for byte, and one
// proof for all of them to a checkpoint that the ledger's key has signed.

import Type, { type Static } from 'typebox';
import { closed, Sha256 } from '../shapes.js';
import { KeyNotes } from './evidence.js';

export const BAG_PROOF_FORMAT = 'turnpike-bag-proof/1';

/** Limit of a checkpoint with its signatures. */
export const CHECKPOINT_CHARACTERS_MAX = 16_384;

/** A line of entries.jsonl: an entry and its index in the log. */
export const BagEntry = Type.Object(
  { entry: Type.String(), index: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) },
  closed,
);
export type BagEntry = Static<typeof BagEntry>;

/** proof.json. */
export const BagProof = Type.Object(
  {
    format: Type.Literal(BAG_PROOF_FORMAT),
    /** The notes of all rotations of the key, if there were any. In canonical JSON they precede the checkpoint. */
    chain: Type.Optional(KeyNotes),
    /** The public key of the log: `name+hash+base64`. Compare it with a key from another source. */
    key: Type.String({ maxLength: 4_096 }),
    /** A signed checkpoint with one extra line that names the bag: `bag sha256:` and the hash of `BagDigest`. */
    checkpoint: Type.String({ maxLength: CHECKPOINT_CHARACTERS_MAX }),
    /** Hashes of the largest perfect subtrees of the log that contain no entry of entries.jsonl, from left to right. */
    hashes: Type.Array(Sha256),
  },
  closed,
);
export type BagProof = Static<typeof BagProof>;

/** The extra line of the checkpoint holds the SHA-256 of its canonical JSON. */
export interface BagDigest {
  /** Of the file entries.jsonl. */
  readonly entries_sha256: string;
  readonly manifest_hash_sha256: string;
}
