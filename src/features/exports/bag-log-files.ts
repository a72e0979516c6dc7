// Writes the log of a bag: every entry of the case's trees, and the proof that they are in the log of the ledger. The
// proof is signed together with the manifest, so without the key no entry can be omitted or replaced.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { createHash } from 'node:crypto';
import type { PayloadFile } from './bagit/write-bag.js';
import {
  BAG_PROOF_FORMAT,
  type BagDigest,
  type BagEntry,
  type BagProof,
} from '../../core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../core/contract/json.js';
import { entryTypes } from '../../core/contract/run/entry.js';
import type { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { sha256 } from '../../core/contract/hash.js';
import { BagError, InvariantError } from '../../core/errors.js';
import { checkpointText } from '../../core/ledger/proof/checkpoint.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';
import { signNote, type NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { ExportBagContents } from './bag-contents.js';
import { encodeLines, LOG, PROOF, EXPORT_BAG_LIMITS } from './bag-format.js';

/** The two files in the order in which they must be written: the second contains the hash of the first. */
export function bagLogFiles(
  contents: ExportBagContents,
  manifest: ExportBundle,
  signer: NoteSigner,
): readonly PayloadFile[] {
  const hash = createHash('sha256');
  let entries_sha256: string | null = null;
  const entries = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of encodeLines(entryLines(contents))) {
      hash.update(piece);
      yield piece;
    }
    entries_sha256 = hash.digest('hex');
  };
  // eslint-disable-next-line @typescript-eslint/require-await -- a sink takes content asynchronously
  const proof = async function* (): AsyncGenerator<Uint8Array> {
    if (entries_sha256 === null) throw new InvariantError('the proof of a bag is written behind its entries');
    const manifest_hash_sha256 = manifest.integrity?.manifest_hash_sha256 ?? '';
    yield Buffer.from(proofText(contents, { entries_sha256, manifest_hash_sha256 }, signer));
  };
  return [
    { path: LOG, content: entries() },
    { path: PROOF, content: proof() },
  ];
}

/** The line of the checkpoint that names the bag. */
export const digestLine = (digest: BagDigest): string => `bag sha256:${sha256(canonicalJson(digest))}`;

function proofText({ history, proof }: ExportBagContents, digest: BagDigest, signer: NoteSigner): string {
  const { size, root } = history.slice.head;
  const text = `${checkpointText({ origin: signer.name, size, root })}${digestLine(digest)}\n`;
  const content: BagProof = {
    format: BAG_PROOF_FORMAT,
    key: signer.vkey,
    ...keyNotesOf(signer),
    checkpoint: signNote(text, signer),
    hashes: [...(proof ?? [])],
  };
  const written = canonicalJson(content);
  if (written.length <= EXPORT_BAG_LIMITS.proof_bytes_max) return written;
  throw new BagError({ code: 'BAG_UNWRITABLE', message: 'the proof of the case exceeds the limit of a bag' });
}

async function* entryLines({ history }: ExportBagContents): AsyncGenerator<readonly string[]> {
  for await (const entries of history.entries(entryTypes())) {
    yield entries.map(({ text, log_index }) => {
      const line = canonicalJson({ entry: text, index: log_index } satisfies BagEntry);
      if (line.length <= EXPORT_BAG_LIMITS.line_characters_max) return line;
      throw new BagError({
        code: 'BAG_UNWRITABLE',
        message: `entry ${nameInLedger(log_index)} does not fit into a bag`,
      });
    });
  }
}
