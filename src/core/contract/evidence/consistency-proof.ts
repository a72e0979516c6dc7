import Type, { type Static } from 'typebox';
import { formatHeader, type FileFormat } from '../file-format.js';
import { closed, Sha256 } from '../shapes.js';
import { KeyNotes } from './evidence.js';

/** No tree of up to 2^53 leaves has a longer proof. */
export const PROOF_HASHES_MAX = 64;
const NOTE_CHARS_MAX = 4_096;

export const PROOF_FORMAT: FileFormat = { prefix: 'turnpike/consistency-proof@v', newest: 1 };

/** Proves that a log extends the log of an older checkpoint. */
export const ConsistencyProof = Type.Object(
  {
    format: Type.Literal(formatHeader(PROOF_FORMAT)),
    /** The two signed checkpoints. */
    older: Type.String({ maxLength: NOTE_CHARS_MAX }),
    newer: Type.String({ maxLength: NOTE_CHARS_MAX }),
    /** The notes of all rotations of the key, if there were any. */
    chain: Type.Optional(KeyNotes),
    proof: Type.Array(Sha256, { maxItems: PROOF_HASHES_MAX }),
  },
  closed,
);
export type ConsistencyProof = Static<typeof ConsistencyProof>;
