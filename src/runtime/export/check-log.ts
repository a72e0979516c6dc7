// Is what a bag holds in the log of a ledger? The entries of the bag come to the root of a signed checkpoint; runs,
// events and lists are made again from them, by the functions that wrote them, and must be the ones in the bag.

import { createHash } from 'node:crypto';
import { valuesOf } from '../../bagit/bag-info.js';
import { BagProof } from '../../contract/bag-proof.js';
import { BagError, LedgerError } from '../../errors.js';
import { openCheckpoint, type Checkpoint } from '../../ledger/checkpoint.js';
import { noteVerifier, type NoteVerifier } from '../../ledger/signed-note.js';
import { SubsetRoot } from '../../ledger/subset-proof.js';
import { bagEntries, bagLog, LOG_PATH } from './bag-log.js';
import { ContentCollector, type BundleContents } from './bundle-contents.js';
import { AUDIT, inPieces, RUNS } from './bundle-files.js';
import { BUNDLE_LIMITS } from './bundle-limits.js';
import { told, type BundleFindings } from './bundle-finding.js';
import { digestLine } from './bundle-log.js';
import { eventLines, recordLines } from './bundle-payload.js';
import { isCanonical, isProblem, MANIFEST_BOUNDS, parsed, textOf, type BundleReading } from './bundle-text.js';
import { PROOF_PATH, type BagAuthentication, type BagUnderCheck } from './bundle-report.js';
import { checkRequest, RequestInputs } from './check-request.js';

const PINNED = /^data\/(?:machines|policies)\//;

/** Whether a bag has a log and a proof; if it has one of them, it must have both. */
export const hasLog = ({ files }: BundleReading): boolean => files.has(PROOF_PATH) || files.has(LOG_PATH);

/**
 * Checks the log of a bag and, with it, everything in the bag that was made from it.
 * @returns who has signed it: whether the bag is what its log says, only the findings tell
 */
export async function checkLog(bag: BagUnderCheck): Promise<BagAuthentication> {
  const { reading, key } = bag;
  if (!hasLog(reading))
    return unauthenticated(null, 'it has no proof: an older version made it, or a ledger without a key');
  const read = await readProof(reading);
  const signed = read === null ? null : signedCheckpoint(read, bag);
  if (read === null || signed === null) return unauthenticated(null, 'its proof is not signed by the key');
  await checkSigned(bag, read, signed.checkpoint);
  const name = `${signed.verifier.name}+${signed.verifier.key_hash}`;
  if (key === null)
    return unauthenticated(name, 'no key was named: compare the key in it with one that came another way');
  return { verdict: 'authenticated', key: name, why: null };
}

async function checkSigned(bag: BagUnderCheck, proof: BagProof, at: Checkpoint): Promise<void> {
  try {
    const contents = await provedContents(bag, proof, at);
    if (contents !== null) await compareContents(bag, contents);
  } catch (error) {
    // What no bag would have been written of.
    if (!(error instanceof BagError || error instanceof LedgerError)) throw error;
    bag.reading.findings.add('bundle.not_logged', LOG_PATH, error.message);
  }
}

const unauthenticated = (key: string | null, why: string): BagAuthentication => ({
  verdict: 'unauthenticated',
  key,
  why,
});

async function readProof(reading: BundleReading): Promise<BagProof | null> {
  const text = await textOf(reading, PROOF_PATH, BUNDLE_LIMITS.proof_bytes_max);
  const proof = text === null ? null : parsed(BagProof, text, MANIFEST_BOUNDS);
  if (proof === null || text === null) return null;
  if (!isProblem(proof) && isCanonical(text, proof)) return proof;
  reading.findings.add('bundle.proof_malformed', PROOF_PATH, 'it is no proof in canonical JSON');
  return null;
}

interface Signed {
  readonly verifier: NoteVerifier;
  readonly checkpoint: Checkpoint;
}

/** The checkpoint, where the key has signed it for this very bag. */
function signedCheckpoint({ key, checkpoint: note }: BagProof, bag: BagUnderCheck): Signed | null {
  const { reading, manifest } = bag;
  const verifier = bag.key ?? noteVerifier(key);
  const checkpoint = verifier === null ? null : openCheckpoint(Buffer.from(note), verifier);
  const refuse = (message: string): null => {
    reading.findings.add('bundle.proof_unsigned', PROOF_PATH, message);
    return null;
  };
  if (verifier === null || checkpoint === null) return refuse('its checkpoint is not signed by this key');
  if (verifier.vkey !== key) return refuse('the key in it is not the key that has signed');
  const entries_sha256 = reading.files.get(LOG_PATH)?.actual?.sha256 ?? '';
  const manifest_hash_sha256 = manifest.integrity?.manifest_hash_sha256 ?? '';
  const line = note.split('\n')[3];
  if (line !== digestLine({ entries_sha256, manifest_hash_sha256 })) return refuse('it was signed for another bag');
  const { size, root } = checkpoint;
  const says = [valuesOf(bag.info, 'Turnpike-Ledger-Size'), valuesOf(bag.info, 'Turnpike-Ledger-Root')];
  if (says.join() === `${size},${root}`) return { verifier, checkpoint };
  reading.findings.add('bundle.info_differs', 'bag-info.txt', 'it names another ledger than the checkpoint');
  return null;
}

/** What the entries say that the bag holds; null, with a finding, where they are not in the log of the checkpoint. */
async function provedContents(bag: BagUnderCheck, proof: BagProof, at: Checkpoint): Promise<BundleContents | null> {
  const { reading, manifest } = bag;
  const { findings } = reading;
  const known = findings.errors;
  const root = new SubsetRoot(at.size, proof.hashes);
  const collector = new ContentCollector(manifest.case_id ?? '');
  const requests = new RequestInputs();
  const { entries_max, untrusted_entries_max } = bag.limits;
  const entriesMax = bag.key === null ? untrusted_entries_max : entries_max;
  let read = 0;
  for await (const entries of bagLog(reading)) {
    read += entries.length;
    if (read > entriesMax) {
      const hint = bag.key === null ? ': name the key that must have signed (--key)' : '';
      findings.add('bundle.limit', LOG_PATH, `more than ${entriesMax} entries${hint}`);
      return null;
    }
    for (const { entry, log_index, leaf_hash } of entries) {
      if (!root.take(log_index, leaf_hash)) break;
      collector.take({ entry, log_index });
      requests.take(entry);
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
  return collector.contents(bagEntries(reading, { case_id: manifest.case_id ?? '', head }), proof.hashes);
}

/**
 * Holds runs, events and lists of the bag against what its entries say. The manifest names the runs and events of the
 * two files, each in its place, and each file below `data/artifacts/`: that was checked before.
 */
async function compareContents({ reading, manifest }: BagUnderCheck, contents: BundleContents): Promise<void> {
  const { files, findings } = reading;
  const differs = (path: string, what: string): void => {
    findings.add('bundle.not_logged', path, `${what} not what the entries of the log say`);
  };
  for (const [name, lines] of [
    [AUDIT, eventLines],
    [RUNS, recordLines],
  ] as const) {
    const path = `data/${name}`;
    const hash = createHash('sha256');
    for await (const piece of inPieces(lines(contents))) hash.update(piece);
    if (files.get(path)?.actual?.sha256 !== hash.digest('hex')) differs(path, 'it is');
  }
  compareArtifacts(manifest.contents.artifacts, contents.artifacts, differs);
  compareFiles(files, contents.files, findings);
}

type Artifacts = BundleContents['artifacts'];

const keyOf = ({ hash_sha256, artifact_kind, byte_size }: Artifacts[number]): string =>
  [hash_sha256, artifact_kind, byte_size].join(' ');

/** A bag lists each artifact that its entries name, and no other. */
function compareArtifacts(listed: Artifacts, logged: Artifacts, differs: (path: string, what: string) => void): void {
  const [inManifest, inLog] = [new Set(listed.map(keyOf)), new Set(logged.map(keyOf))];
  for (const ref of listed) {
    if (!inLog.has(keyOf(ref))) differs('data/manifest.json', `the artifact ${told(ref.hash_sha256)} is`);
  }
  const missing = logged.find((ref) => !inManifest.has(keyOf(ref)));
  if (missing !== undefined) differs('data/manifest.json', `without the artifact ${missing.hash_sha256} it is`);
}

/** A bag holds every policy and every machine definition that its trees have pinned, and no other. */
function compareFiles(files: BundleReading['files'], logged: BundleContents['files'], findings: BundleFindings): void {
  const paths = new Set(logged.map(({ path }) => `data/${path}`).filter((path) => PINNED.test(path)));
  for (const path of files.keys()) {
    if (!PINNED.test(path) || paths.has(path)) continue;
    findings.add('bundle.not_logged', path, 'it is not what the entries of the log say');
  }
  for (const path of paths) {
    if (!files.has(path)) findings.add('bundle.policy_missing', path, 'the entries of the log name it');
  }
}
