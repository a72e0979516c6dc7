// Proof files that anyone can check with only a public key. An inclusion proof of an entry is a C2SP tlog-proof with
// the entry as its extra data; a consistency proof from an earlier checkpoint is JSON, and so is the signed statement
// about the coverage of policies.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { isUtf8 } from 'node:buffer';
import { isJsonObject, readJson } from '../../core/contract/json.js';
import { formatHeader, refuseOtherFormat } from '../../core/contract/file-format.js';
import { ConsistencyProof, PROOF_FORMAT, PROOF_HASHES_MAX } from '../../core/contract/evidence/consistency-proof.js';
import { SignedStatement } from '../../core/contract/evidence/evidence.js';
import { isConforming } from '../../core/contract/validators.js';
import { openSignedHead, type Checkpoint } from '../../core/ledger/proof/checkpoint.js';
import { followKeys, readRotation } from '../../core/ledger/proof/key-history.js';
import { leafHash, EMPTY_HEAD } from '../../core/ledger/proof/merkle.js';
import { verifyConsistency, verifyInclusion } from '../../core/ledger/proof/merkle-proof.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import { CoverageStatement } from '../../core/contract/evidence/coverage-proof.js';
import { openStatement } from '../../core/ledger/proof/dsse.js';

/** Limit of a proof file; an entry has a few kilobytes. */
export const PROOF_BYTES_MAX = 8 * 1024 * 1024;
const TLOG_PROOF = 'c2sp.org/tlog-proof@v1';
const INDEX = /^(?:0|[1-9]\d{0,15})$/;
const HASH_BYTES = 32;

/** An entry, its log index, and its inclusion proof for the root of a signed checkpoint. */
export interface EntryProof {
  /** The entry as canonical JSON. */
  readonly text: string;
  readonly index: number;
  readonly proof: readonly string[];
  readonly note: string;
}

export type ProofVerdict =
  | {
      readonly ok: true;
      readonly kind: 'entry';
      readonly index: number;
      readonly text: string;
      readonly at: Checkpoint;
    }
  | { readonly ok: true; readonly kind: 'consistency'; readonly from: Checkpoint; readonly at: Checkpoint }
  | ({ readonly ok: true; readonly kind: 'coverage' } & Omit<SignedCoverage, 'key'>)
  | { readonly ok: false; readonly why: string };

export function entryProofFile({ text, index, proof, note }: EntryProof): string {
  const hashes = proof.map((hash) => Buffer.from(hash, 'hex').toString('base64'));
  const extra = `extra ${Buffer.from(text).toString('base64')}`;
  return `${[TLOG_PROOF, extra, `index ${index}`, ...hashes].join('\n')}\n\n${note}`;
}

export const consistencyProofFile = (proof: Omit<ConsistencyProof, 'format'>): string =>
  `${JSON.stringify({ format: formatHeader(PROOF_FORMAT), ...proof }, null, 2)}\n`;

/**
 * Verifies what a file claims about the log whose key is given. Nothing in the file is trusted.
 * @param kept a checkpoint that the verifier has kept: only a consistency proof that begins at it proves anything
 * @returns what is proved, or the reason why it is not
 * @throws LedgerError LEDGER_UNSUPPORTED for a later format
 */
export function verifyProofFile(
  file: Uint8Array,
  verifier: NoteVerifier,
  kept: Uint8Array | null = null,
): ProofVerdict {
  if (file.length > PROOF_BYTES_MAX || !isUtf8(file)) return invalidVerdict('this is no proof file');
  const text = Buffer.from(file).toString('utf8');
  if (text.startsWith(`${TLOG_PROOF}\n`)) {
    if (kept !== null) return invalidVerdict('the proof of an entry begins at no checkpoint: make one with --from');
    return verifyEntryProof(readEntryProof(text), verifier);
  }
  const value = readJson(text);
  const format = isJsonObject(value) ? value['format'] : undefined;
  if (typeof format === 'string') refuseOtherFormat(format, PROOF_FORMAT, 'the proof');
  if (isConforming(SignedStatement, value)) return verifyCoverage(value as SignedStatement, verifier, kept);
  const consistency = isConforming(ConsistencyProof, value) ? (value as ConsistencyProof) : null;
  if (consistency === null) return invalidVerdict('this is no proof file');
  return verifyConsistencyProof(consistency, verifier, kept);
}

function verifyEntryProof(entryProof: EntryProof | null, verifier: NoteVerifier): ProofVerdict {
  if (entryProof === null) return invalidVerdict('the proof of an entry is damaged');
  const signed = openSignedHead(Buffer.from(entryProof.note), verifier);
  if (typeof signed === 'string') return invalidVerdict(`its checkpoint ${signed}`);
  const at = signed.checkpoint;
  const { text, index, proof } = entryProof;
  if (!verifyInclusion({ index, size: at.size, leaf_hash: leafHash(text), root: at.root, proof })) {
    return invalidVerdict(`its entry is not entry ${nameInLedger(index)} of the log that its checkpoint vouches for`);
  }
  return { ok: true, kind: 'entry', index, text, at };
}

/** The chain of the proof leads from the key that is trusted to the current one. */
function verifyConsistencyProof(
  { older, newer, proof, chain }: ConsistencyProof,
  trusted: NoteVerifier,
  kept: Uint8Array | null,
): ProofVerdict {
  const key = readRotation(chain?.at(-1) ?? '')?.rotation.new_key ?? trusted.vkey;
  const verifier = followKeys(trusted, { key, chain });
  if (typeof verifier === 'string') return invalidVerdict(verifier);
  const [from, at] = [older, newer].map((note) => openSignedHead(Buffer.from(note), verifier));
  if (from === undefined || at === undefined || typeof from === 'string' || typeof at === 'string') {
    const why = [from, at].find((head) => typeof head === 'string') ?? '';
    return invalidVerdict(`one of its checkpoints ${why}`);
  }
  const difference = kept === null ? null : differenceFromKept(kept, from.checkpoint, verifier);
  if (difference !== null) return invalidVerdict(difference);
  if (!verifyConsistency({ older: from.checkpoint, newer: at.checkpoint, proof })) {
    return invalidVerdict(
      `the log of ${at.checkpoint.size} entries does not go on from the one of ${from.checkpoint.size}`,
    );
  }
  return { ok: true, kind: 'consistency', from: from.checkpoint, at: at.checkpoint };
}

function verifyCoverage(envelope: SignedStatement, trusted: NoteVerifier, kept: Uint8Array | null): ProofVerdict {
  const opened = openCoverage(envelope, trusted);
  if (typeof opened === 'string') return invalidVerdict(opened);
  const { key, ...coverage } = opened;
  const { from } = coverage;
  if (kept !== null && from === null) return invalidVerdict('it begins at no checkpoint, but at the first entry');
  const difference = kept === null || from === null ? null : differenceFromKept(kept, from, key);
  return difference === null ? { ok: true, kind: 'coverage', ...coverage } : invalidVerdict(difference);
}

function differenceFromKept(kept: Uint8Array, from: Checkpoint, verifier: NoteVerifier): string | null {
  const opened = openSignedHead(kept, verifier);
  if (typeof opened === 'string') return `the kept checkpoint ${opened}`;
  const { size, root } = opened.checkpoint;
  if (size === from.size && root === from.root) return null;
  return `it begins at ${from.size} entries, root ${from.root}: the kept checkpoint has ${size} entries, root ${root}`;
}

function readEntryProof(file: string): EntryProof | null {
  const [, head = '', note = ''] = /^([^]*?)\n\n([^]*)$/.exec(file) ?? [];
  const [, extra = '', index = '', ...hashes] = head.split('\n');
  const text = extra.startsWith('extra ') ? decodeBase64(extra.slice('extra '.length)) : null;
  const at = index.startsWith('index ') ? index.slice('index '.length) : '';
  const proof = hashes.map(decodeBase64);
  if (text === null || !isUtf8(text) || !INDEX.test(at) || hashes.length > PROOF_HASHES_MAX) return null;
  if (proof.some((hash) => hash?.length !== HASH_BYTES)) return null;
  return {
    text: text.toString('utf8'),
    index: Number(at),
    proof: proof.map((hash) => hash?.toString('hex') ?? ''),
    note,
  };
}

function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return text !== '' && bytes.toString('base64') === text ? bytes : null;
}

const invalidVerdict = (why: string): ProofVerdict => ({ ok: false, why });

// Verifies the signed statement of `turnpike policy coverage`. Nothing in it is trusted: the key must have signed the
// statement and both checkpoints, and the later log must extend the earlier one. The counts are what the key claims.

interface SignedCoverage extends Pick<CoverageStatement['predicate'], 'not_recomputed' | 'policies'> {
  /** Null: the decisions are counted from the first entry. */
  readonly from: Checkpoint | null;
  readonly at: Checkpoint;
  /** The keys by which the checkpoints were verified. */
  readonly key: NoteVerifier;
}

/** Verifies a statement. @returns what is wrong with it, or what it says */
function openCoverage(envelope: SignedStatement, trusted: NoteVerifier): SignedCoverage | string {
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
