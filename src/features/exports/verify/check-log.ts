// Checks that the contents of a bag are in the log of a ledger. The entries of the bag must lead to the root of a
// signed checkpoint. Runs, events and lists are generated again from them by the functions that wrote them, and must be
// equal.

import { createHash } from 'node:crypto';
import { infoValuesOf } from '../bagit/bag-info.js';
import { BagProof } from '../../../core/contract/evidence/bag-proof.js';
import { BagError, LedgerError } from '../../../core/errors.js';
import { openSignedHead, type Checkpoint } from '../../../core/ledger/proof/checkpoint.js';
import { followKeys } from '../../../core/ledger/proof/key-history.js';
import type { NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import { SubsetRoot } from '../subset-proof.js';
import { caseEntriesOfBag, readBagLog, LOG_PATH } from './read-bag-log.js';
import { ContentCollector, type ExportBagContents } from '../bag-contents.js';
import { AUDIT, encodeLines, RUNS, EXPORT_BAG_LIMITS } from '../bag-format.js';
import { quoteExcerpt, type ExportBagFindings, PROOF_PATH, type BagAuthentication } from './bag-report.js';
import { digestLine } from '../bag-log-files.js';
import { eventLines, recordLines } from '../bag-payload.js';
import {
  isCanonical,
  isTextProblem,
  MANIFEST_BOUNDS,
  parseText,
  readBagText,
  type BagUnderCheck,
  type ExportBagReading,
} from './read-bag-text.js';
import { checkRequest, RequestInputs } from './check-request.js';

const PINNED = /^data\/(?:machines|policies)\//;

/** Whether a bag has a log or a proof; a bag with one of them must have both. */
export const hasLog = ({ files }: ExportBagReading): boolean => files.has(PROOF_PATH) || files.has(LOG_PATH);

/**
 * Checks the log of a bag, and everything in the bag that was generated from it.
 * @returns who signed it. Only the findings show whether the bag matches its log
 */
export async function checkLog(bag: BagUnderCheck): Promise<BagAuthentication> {
  const { reading, key } = bag;
  if (!hasLog(reading)) return unauthenticatedBag(null, 'it has no proof: a ledger without a key made it');
  const read = await readProof(reading);
  const signed = read === null ? null : openSignedCheckpoint(read, bag);
  if (read === null || signed === null) return unauthenticatedBag(null, 'its proof is not signed by the key');
  await checkSignedContents(bag, read, signed.checkpoint);
  const name = `${signed.verifier.name}+${signed.verifier.key_hash}`;
  if (key === null)
    return unauthenticatedBag(name, 'no key was named: compare the key in it with one that came another way');
  return { verdict: 'authenticated', key: name, why: null };
}

async function checkSignedContents(bag: BagUnderCheck, proof: BagProof, at: Checkpoint): Promise<void> {
  try {
    const contents = await proveContents(bag, proof, at);
    if (contents !== null) await compareContents(bag, contents);
  } catch (error) {
    // An export would have failed on such entries.
    if (!(error instanceof BagError || error instanceof LedgerError)) throw error;
    bag.reading.findings.add('bundle.not_logged', LOG_PATH, error.message);
  }
}

const unauthenticatedBag = (key: string | null, why: string): BagAuthentication => ({
  verdict: 'unauthenticated',
  key,
  why,
});

async function readProof(reading: ExportBagReading): Promise<BagProof | null> {
  const text = await readBagText(reading, PROOF_PATH, EXPORT_BAG_LIMITS.proof_bytes_max);
  const proof = text === null ? null : parseText(BagProof, text, MANIFEST_BOUNDS);
  if (proof === null || text === null) return null;
  if (!isTextProblem(proof) && isCanonical(text, proof)) return proof;
  reading.findings.add('bundle.proof_malformed', PROOF_PATH, 'it is no proof in canonical JSON');
  return null;
}

interface SignedCheckpoint {
  readonly verifier: NoteVerifier;
  readonly checkpoint: Checkpoint;
}

/** The checkpoint, if the key has signed it for this very bag. */
function openSignedCheckpoint(proof: BagProof, bag: BagUnderCheck): SignedCheckpoint | null {
  const { reading, manifest } = bag;
  const { key, checkpoint: note } = proof;
  const keys = followKeys(bag.key, proof);
  const signed = typeof keys === 'string' ? keys : openSignedHead(Buffer.from(note), keys);
  const refuse = (message: string): null => {
    reading.findings.add('bundle.proof_unsigned', PROOF_PATH, message);
    return null;
  };
  if (typeof signed === 'string') return refuse(typeof keys === 'string' ? keys : `its checkpoint ${signed}`);
  const { checkpoint, key: verifier } = signed;
  if (verifier.vkey !== key) return refuse('the key in it is not the key that has signed');
  const entries_sha256 = reading.files.get(LOG_PATH)?.actual?.sha256 ?? '';
  const manifest_hash_sha256 = manifest.integrity?.manifest_hash_sha256 ?? '';
  const line = note.split('\n')[3];
  if (line !== digestLine({ entries_sha256, manifest_hash_sha256 })) return refuse('it was signed for another bag');
  const { size, root } = checkpoint;
  const infoValues = [infoValuesOf(bag.info, 'Turnpike-Ledger-Size'), infoValuesOf(bag.info, 'Turnpike-Ledger-Root')];
  if (infoValues.join() === `${size},${root}`) return { verifier, checkpoint };
  reading.findings.add('bundle.info_differs', 'bag-info.txt', 'it names another ledger than the checkpoint');
  return null;
}

/** The contents according to the entries; null, with a finding, if they are not in the log of the checkpoint. */
async function proveContents(bag: BagUnderCheck, proof: BagProof, at: Checkpoint): Promise<ExportBagContents | null> {
  const { reading, manifest } = bag;
  const { findings } = reading;
  const known = findings.errors;
  const root = new SubsetRoot(at.size, proof.hashes);
  const collector = new ContentCollector(manifest.case_id ?? '');
  const requests = new RequestInputs();
  const { entries_max, untrusted_entries_max } = bag.limits;
  const entriesMax = bag.key === null ? untrusted_entries_max : entries_max;
  let read = 0;
  for await (const entries of readBagLog(reading)) {
    read += entries.length;
    if (read > entriesMax) {
      const hint = bag.key === null ? ': name the key that must have signed (--key)' : '';
      findings.add('bundle.limit', LOG_PATH, `more than ${entriesMax} entries${hint}`);
      return null;
    }
    for (const { entry, log_index, leaf_hash } of entries) {
      if (!root.take(log_index, leaf_hash)) break;
      collector.add({ entry, log_index });
      requests.add(entry);
    }
  }
  if (findings.errors > known) return null;
  if (root.root() !== at.root) {
    const message = `its hashes and the entries do not come to the root of the checkpoint at ${at.size}`;
    findings.add('bundle.proof_differs', PROOF_PATH, message);
    return null;
  }
  await checkRequest(bag, requests);
  const head = { size: at.size, root: at.root, frontier: [] };
  return collector.contents(caseEntriesOfBag(reading, { case_id: manifest.case_id ?? '', head }), proof.hashes);
}

/**
 * Compares runs, events and lists of the bag with its entries. Earlier checks compared the manifest with the runs and
 * events of the two files, in their order, and with each file below `data/artifacts/`.
 */
async function compareContents({ reading, manifest }: BagUnderCheck, contents: ExportBagContents): Promise<void> {
  const { files, findings } = reading;
  const addDifference = (path: string, what: string): void => {
    findings.add('bundle.not_logged', path, `${what} not what the entries of the log say`);
  };
  for (const [name, lines] of [
    [AUDIT, eventLines],
    [RUNS, recordLines],
  ] as const) {
    const path = `data/${name}`;
    const hash = createHash('sha256');
    for await (const piece of encodeLines(lines(contents))) hash.update(piece);
    if (files.get(path)?.actual?.sha256 !== hash.digest('hex')) addDifference(path, 'it is');
  }
  compareArtifacts(manifest.contents.artifacts, contents.artifacts, addDifference);
  compareFiles(files, contents.files, findings);
}

type Artifacts = ExportBagContents['artifacts'];

const keyOf = ({ hash_sha256, artifact_kind, byte_size }: Artifacts[number]): string =>
  [hash_sha256, artifact_kind, byte_size].join(' ');

/** A bag must list exactly the artifacts that its entries reference. */
function compareArtifacts(
  listed: Artifacts,
  logged: Artifacts,
  addDifference: (path: string, what: string) => void,
): void {
  const [inManifest, inLog] = [new Set(listed.map(keyOf)), new Set(logged.map(keyOf))];
  for (const ref of listed) {
    if (!inLog.has(keyOf(ref))) addDifference('data/manifest.json', `the artifact ${quoteExcerpt(ref.hash_sha256)} is`);
  }
  const missing = logged.find((ref) => !inManifest.has(keyOf(ref)));
  if (missing !== undefined) addDifference('data/manifest.json', `without the artifact ${missing.hash_sha256} it is`);
}

/** A bag must contain exactly the policies and machine definitions that its trees have pinned. */
function compareFiles(
  files: ExportBagReading['files'],
  logged: ExportBagContents['files'],
  findings: ExportBagFindings,
): void {
  const paths = new Set(logged.map(({ path }) => `data/${path}`).filter((path) => PINNED.test(path)));
  for (const path of files.keys()) {
    if (!PINNED.test(path) || paths.has(path)) continue;
    findings.add('bundle.not_logged', path, 'it is not what the entries of the log say');
  }
  for (const path of paths) {
    if (!files.has(path)) findings.add('bundle.policy_missing', path, 'the entries of the log name it');
  }
}
