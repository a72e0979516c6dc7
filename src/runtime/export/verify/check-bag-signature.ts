// Refuses a bag that the key has not signed before it is read: to hash all of a large bag takes minutes.

import { CHECKPOINT_CHARACTERS_MAX } from '../../../contract/evidence/bag-proof.js';
import { BagError } from '../../../errors.js';
import { openCheckpoint } from '../../../ledger/proof/checkpoint.js';
import type { NoteVerifier } from '../../../ledger/proof/signed-note.js';
import type { BagTree } from '../../../ports/bag-tree.js';
import { EXPORT_BAG_RULES } from './bag-findings.js';
import { PROOF_PATH, type ExportBagReport } from './bag-report.js';

/**
 * @returns the report of a bag whose proof the key has not signed; null for any other bag, which is to be checked
 * @throws BagError BAG_UNREADABLE or BAG_HOSTILE when the tree cannot be listed
 */
export async function checkBagSignature(tree: BagTree, key: NoteVerifier): Promise<ExportBagReport | null> {
  if (!(await hasFile(tree, PROOF_PATH))) return null;
  const checkpoint = await readProofCheckpoint(tree);
  const isSigned = checkpoint !== null && openCheckpoint(Buffer.from(checkpoint), key) !== null;
  return isSigned ? null : REFUSED_REPORT;
}

async function hasFile(tree: BagTree, path: string): Promise<boolean> {
  for await (const entry of tree.entries()) if (entry.kind === 'file' && entry.path === path) return true;
  return false;
}

/** In canonical JSON the checkpoint is the first member. */
const CHECKPOINT = /^\{"checkpoint":("(?:[^"\\]|\\.)*")/;

/** The checkpoint in the proof, from its first bytes; null for what is no proof. */
async function readProofCheckpoint(tree: BagTree): Promise<string | null> {
  let head = '';
  try {
    for await (const piece of tree.read(PROOF_PATH)) {
      head += Buffer.from(piece).toString('utf8');
      if (head.length > 2 * CHECKPOINT_CHARACTERS_MAX) break;
    }
    const [, text] = CHECKPOINT.exec(head) ?? [];
    return text === undefined ? null : (JSON.parse(text) as string);
  } catch (error) {
    if (error instanceof BagError || error instanceof SyntaxError) return null;
    throw error;
  }
}

const REFUSED_REPORT: ExportBagReport = {
  valid: false,
  version: null,
  encoding: null,
  algorithms: [],
  payload: { files: 0, bytes: 0 },
  info: [],
  tag_manifest_sha256: null,
  bundle: null,
  authentication: { verdict: 'unauthenticated', key: null, why: 'the key has not signed it' },
  findings: [
    {
      severity: EXPORT_BAG_RULES['bundle.proof_unsigned'],
      rule_id: 'bundle.proof_unsigned',
      path: PROOF_PATH,
      message: 'its checkpoint is not signed by this key: nothing else of it was read',
    },
  ],
  findings_dropped: 0,
};
