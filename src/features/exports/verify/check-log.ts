// Checks that the contents of a bag are in the log of a ledger. The entries of the bag must lead to the root of a
// signed checkpoint. Runs, events and lists are generated again from them by the functions that wrote them, and must be
// equal.

import { createHash } from 'node:crypto';
import { infoValuesOf } from '../bagit/bag-info.js';
import { BagProof, BagEntry } from '../../../core/contract/evidence/bag-proof.js';
import { BagError, LedgerError } from '../../../core/errors.js';
import { openSignedHead, type Checkpoint } from '../../../core/ledger/proof/checkpoint.js';
import { followKeys } from '../../../core/ledger/proof/key-history.js';
import type { NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import { SubsetRoot } from '../subset-proof.js';
import { ContentCollector, type ExportBagContents, type CaseEntries } from '../bag-contents.js';
import { AUDIT, encodeLines, RUNS, EXPORT_BAG_LIMITS, LOG } from '../bag-format.js';
import {
  quoteExcerpt,
  type ExportBagFindings,
  PROOF_PATH,
  type BagAuthentication,
  type ExportBagRule,
} from './bag-report.js';
import { digestLine, eventLines, recordLines } from '../bag-payload.js';
import {
  isCanonical,
  isTextProblem,
  MANIFEST_BOUNDS,
  parseText,
  readBagText,
  type BagUnderCheck,
  type ExportBagReading,
  LINE_BOUNDS,
  readLines,
} from './read-bag-text.js';
import { checkRequest, RequestInputs } from './check-request.js';
import { isJsonObject, readJson } from '../../../core/contract/json.js';
import { NO_PREV, type Entry, type EntryType } from '../../../core/contract/run/entry.js';
import { checkEntry } from '../../../core/ledger/verification/check-entry.js';
import { leafHash } from '../../../core/ledger/proof/merkle.js';
import type { CaseEntry, CaseSlice } from '../../../runtime/case/case-history.js';

const LOG_PATH = `data/${LOG}`;
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

// Reads the untrusted log of a bag line by line. Each entry is checked against its own text, and the trees must be
// complete chains. Whether they are in the log of a ledger is checked above.

/** An entry of a bag with its hash. */
interface BagLogEntry extends CaseEntry {
  readonly leaf_hash: string;
  /** Its line number, from 1. */
  readonly line: number;
}

/** The end of each tree so far. */
class TreeChains {
  readonly #ends = new Map<string, { readonly seq: number; readonly prev: string }>();

  /** @returns whether the entry is the next one of its tree */
  append({ tree_id, seq, prev }: Entry, leaf_hash: string): boolean {
    const { seq: next, prev: last } = this.#ends.get(tree_id) ?? { seq: 0, prev: NO_PREV };
    this.#ends.set(tree_id, { seq: seq + 1, prev: leaf_hash });
    return seq === next && prev === last;
  }
}

/** The entries of entries.jsonl, in groups. Ends with a finding at the first invalid or misplaced entry. */
async function* readBagLog(reading: ExportBagReading): AsyncGenerator<readonly BagLogEntry[]> {
  const chains = new TreeChains();
  let last = -1;
  for await (const lines of readLines(reading, LOG_PATH)) {
    const found: BagLogEntry[] = [];
    for (const { number, text } of lines) {
      const entry = parseBagEntry(text, number);
      const problem = isEntry(entry) ? orderProblem(entry, chains, last) : entry;
      if (problem !== null || !isEntry(entry)) {
        const [rule, message] = problem ?? (['bundle.entry_malformed', 'it is not a valid entry'] as const);
        reading.findings.add(rule, LOG_PATH, `line ${number}: ${message}`);
        return;
      }
      last = entry.log_index;
      found.push(entry);
    }
    yield found;
  }
}

type EntryProblem = readonly [ExportBagRule, string];

const isEntry = (found: BagLogEntry | EntryProblem): found is BagLogEntry => 'entry' in found;

function orderProblem(found: BagLogEntry, chains: TreeChains, last: number): EntryProblem | null {
  if (found.log_index <= last) return ['bundle.entry_place', 'it comes after an entry that is behind it in the log'];
  if (chains.append(found.entry, found.leaf_hash)) return null;
  return ['bundle.entry_place', 'it is not the next entry of its tree'];
}

function parseBagEntry(line: string, number: number): BagLogEntry | EntryProblem {
  const read = parseText(BagEntry, line, LINE_BOUNDS);
  if (isTextProblem(read)) return read;
  if (!isCanonical(line, read)) return ['bundle.json_not_canonical', 'it is not canonical JSON'];
  const { entry: text, index: log_index } = read;
  const envelope = parseEnvelope(text);
  if (envelope === null) return ['bundle.entry_malformed', 'it is not a valid entry'];
  const leaf_hash = leafHash(text);
  const { findings } = checkEntry({ ...envelope, log_index, text, leaf_hash });
  const [finding] = findings;
  if (finding !== undefined) return ['bundle.entry_malformed', finding.message];
  return { entry: envelope as Entry, log_index, text, leaf_hash, line: number };
}

/** The parsed text, if it has a place and a type: `checkEntry` decides about the rest. */
function parseEnvelope(text: string): (Pick<Entry, 'tree_id' | 'seq'> & { readonly type: string }) | null {
  const value = readJson(text);
  if (!isJsonObject(value)) return null;
  const { tree_id, seq, type } = value;
  const hasPlace = typeof tree_id === 'string' && typeof seq === 'number' && typeof type === 'string';
  return hasPlace ? (value as unknown as Entry) : null;
}

/** The log of a bag in place of a ledger: the same code generates the files of a bag from either. */
const caseEntriesOfBag = (reading: ExportBagReading, slice: CaseSlice): CaseEntries => ({
  slice,
  async *entries(types: readonly EntryType[]) {
    for await (const entries of readBagLog(reading)) yield entries.filter(({ entry }) => types.includes(entry.type));
  },
});
