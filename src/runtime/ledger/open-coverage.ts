// Verifies the signed statement of `turnpike policy coverage`. Nothing in it is trusted: the key must have signed the
// statement and both checkpoints, and the later log must extend the earlier one. The counts are what the key claims.

import { readJson } from '../../core/contract/json.js';
import { CoverageStatement } from '../../core/contract/evidence/coverage-proof.js';
import { SignedStatement } from '../../core/contract/evidence/evidence.js';
import { isConforming } from '../../core/contract/validators.js';
import { openSignedHead, type Checkpoint } from '../../core/ledger/proof/checkpoint.js';
import { openStatement } from '../../core/ledger/proof/dsse.js';
import { followKeys } from '../../core/ledger/proof/key-history.js';
import { EMPTY_HEAD } from '../../core/ledger/proof/merkle.js';
import { verifyConsistency } from '../../core/ledger/proof/merkle-proof.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';

export interface SignedCoverage extends Pick<CoverageStatement['predicate'], 'not_recomputed' | 'policies'> {
  /** Null: the decisions are counted from the first entry. */
  readonly from: Checkpoint | null;
  readonly at: Checkpoint;
  /** The keys by which the checkpoints were verified. */
  readonly key: NoteVerifier;
}

/** Verifies a statement. @returns what is wrong with it, or what it says */
export function openCoverage(envelope: SignedStatement, trusted: NoteVerifier): SignedCoverage | string {
  const claimed = parseStatement(Buffer.from(envelope.payload, 'base64').toString('utf8'));
  if (claimed === null) return 'its statement is not about the coverage of policies';
  const { subject, predicate } = claimed;
  const key = followKeys(trusted, predicate);
  if (typeof key === 'string') return key;
  const to = openSignedHead(Buffer.from(predicate.to), key);
  if (typeof to === 'string') return `its later checkpoint ${to}`;
  // The same key, so that a retired one cannot sign a new statement about the checkpoint of another.
  if (openStatement(envelope, to.key) === null) return 'its statement is not signed by this key';
  const from = predicate.from === null ? null : openSignedHead(Buffer.from(predicate.from), key);
  if (typeof from === 'string') return `its earlier checkpoint ${from}`;
  const at = to.checkpoint;
  const [{ name, digest } = { name: '', digest: { sha256: '' } }] = subject;
  if (name !== at.origin || digest.sha256 !== at.root) return 'its statement is about another checkpoint';
  const older = from?.checkpoint ?? EMPTY_HEAD;
  if (!verifyConsistency({ older, newer: at, proof: predicate.proof })) {
    return `the log of ${at.size} entries does not extend the one of ${older.size}`;
  }
  const { not_recomputed, policies } = predicate;
  return { from: from?.checkpoint ?? null, at, key, not_recomputed, policies };
}

function parseStatement(text: string): CoverageStatement | null {
  const value = readJson(text);
  return isConforming(CoverageStatement, value) ? (value as unknown as CoverageStatement) : null;
}
