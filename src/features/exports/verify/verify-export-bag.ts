// Verifies an exported bag. It is untrusted, no ledger is available, and memory is bounded. With the key of a ledger,
// it must also match what that ledger has recorded.

import { infoValuesOf, parseBagInfo, type InfoElement } from '../bagit/bag-info.js';
import { inspectBag, type BagReport } from '../bagit/verify-bag.js';
import { parseOwnJson } from '../../../core/contract/json.js';
import { CHECKPOINT_CHARACTERS_MAX } from '../../../core/contract/evidence/bag-proof.js';
import { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { BagError } from '../../../core/errors.js';
import { openCheckpoint } from '../../../core/ledger/proof/checkpoint.js';
import { followKeys, readRotation } from '../../../core/ledger/proof/key-history.js';
import type { NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import type { BagTree } from '../../../engine/ports/bag-tree.js';
import { EXPORT_BAG_LIMITS, MANIFEST } from '../bag-format.js';
import {
  EXPORT_BAG_LABEL,
  canonicalHash,
  manifestHash,
  hasTooManyRuns,
  RUN_LABEL,
  findWrongLabels,
  refuseOtherBag,
} from '../bag-manifest.js';
import {
  ExportBagFindings,
  quoteExcerpt,
  type BagAuthentication,
  type ExportBagFacts,
  type ExportBagReport,
  type LogLimits,
  EXPORT_BAG_RULES,
  PROOF_PATH,
} from './bag-report.js';
import { checkArtifacts, listContents, checkRecords } from './check-bag-records.js';
import { checkLog, hasLog } from './check-log.js';
import { isTextProblem, MANIFEST_BOUNDS, parseText, readBagText, type ExportBagReading } from './read-bag-text.js';

const MANIFEST_PATH = `data/${MANIFEST}`;
const INFO_PATH = 'bag-info.txt';
/** Of bag-info.txt, read before the signature of a bag is known. */
const INFO_CHARACTERS_MAX = 65_536;

/** A report, with the manifest of the bag. */
interface ExportBagInspection {
  readonly report: ExportBagReport;
  readonly manifest: ExportBundle | null;
}

/**
 * Verifies a bag (RFC 8493). If bag-info.txt declares it as a bag of Turnpike, its manifest, contents, runs and events
 * are checked, each against the others (S4-76, S4-77). Whether the export was permitted is recorded in the events, and
 * is not judged here.
 * @param key the key that must have signed the bag; it is checked before anything else is read. With null, the bag is
 * only checked for consistency, and is unauthenticated
 * @throws BagError BAG_UNREADABLE or BAG_HOSTILE if the tree cannot be listed
 * @throws LedgerError LEDGER_UNSUPPORTED for a bag of Turnpike whose format this version does not know
 */
export const verifyExportBag = async (
  tree: BagTree,
  key: NoteVerifier | null = null,
  limits: Partial<LogLimits> = {},
): Promise<ExportBagReport> => (await inspectExportBag(tree, key, limits)).report;

/** @throws BagError like `verifyExportBag` */
export async function inspectExportBag(
  tree: BagTree,
  key: NoteVerifier | null = null,
  limits: Partial<LogLimits> = {},
): Promise<ExportBagInspection> {
  const refused = key === null ? null : await checkBagSignature(tree, key);
  if (refused !== null) return { report: refused, manifest: null };
  const { report, files } = await inspectBag(tree);
  refuseOtherBag(report.info);
  if (infoValuesOf(report.info, EXPORT_BAG_LABEL).length === 0) {
    return { report: { ...report, bundle: null, authentication: null }, manifest: null };
  }
  const findings = new ExportBagFindings(EXPORT_BAG_LIMITS.findings_max);
  const reading: ExportBagReading = { tree, files, findings };
  const contents = listContents(files, findings);
  const manifest = await readManifest(reading);
  let authentication: BagAuthentication = { verdict: 'unauthenticated', key: null, why: 'it has no manifest' };
  if (manifest !== null) {
    checkInfo(report, manifest, reading);
    checkArtifacts(manifest, contents, findings);
    await checkRecords({ reading, manifest, contents });
    const bag = { reading, manifest, info: report.info, key, limits: { ...EXPORT_BAG_LIMITS, ...limits } };
    authentication = await checkLog(bag);
  }
  const valid = report.valid && findings.errors === 0;
  return {
    report: {
      ...report,
      valid,
      findings: [...report.findings, ...findings.list()],
      findings_dropped: report.findings_dropped + findings.dropped,
      bundle: manifest === null ? null : factsOf(manifest, contents.artifacts.size),
      authentication: valid ? authentication : { ...authentication, ...NOT_VALID },
    },
    manifest,
  };
}

const NOT_VALID = { verdict: 'unauthenticated', why: 'it is not valid' } as const;

async function readManifest(reading: ExportBagReading): Promise<ExportBundle | null> {
  const { findings } = reading;
  const text = await readBagText(reading, MANIFEST_PATH);
  if (text === null) return null;
  const manifest = parseText(ExportBundle, text, MANIFEST_BOUNDS);
  if (isTextProblem(manifest)) {
    findings.add(manifest[0], MANIFEST_PATH, manifest[1]);
    return null;
  }
  if (hasTooManyRuns(manifest)) {
    findings.add('bundle.limit', MANIFEST_PATH, `it names more than ${EXPORT_BAG_LIMITS.runs_max} runs`);
    return null;
  }
  if (canonicalHash(manifest) !== reading.files.get(MANIFEST_PATH)?.actual?.sha256) {
    findings.add('bundle.json_not_canonical', MANIFEST_PATH, 'it is not canonical JSON');
  }
  const { case_id, audit, integrity, status } = manifest;
  if (case_id === undefined || audit === undefined || integrity === undefined) {
    findings.add('bundle.schema', MANIFEST_PATH, 'a bundle has case_id, audit and integrity');
  }
  if (status !== 'completed') findings.add('bundle.status', MANIFEST_PATH, `its status is ${status}`);
  if (integrity !== undefined && integrity.manifest_hash_sha256 !== manifestHash(manifest)) {
    findings.add('bundle.manifest_hash', MANIFEST_PATH, 'it does not have the hash that it says');
  }
  if (new Set(audit?.audit_event_ids).size !== (audit?.audit_event_ids.length ?? 0)) {
    findings.add('bundle.event_repeated', MANIFEST_PATH, 'it names an event twice');
  }
  return manifest;
}

function checkInfo({ info }: BagReport, manifest: ExportBundle, reading: ExportBagReading): void {
  const { findings } = reading;
  for (const label of findWrongLabels(info, manifest, hasLog(reading))) {
    findings.add('bundle.info_differs', INFO_PATH, `${label} is not there once, with what manifest.json says`);
  }
  const [run_id = '', ...more] = infoValuesOf(info, RUN_LABEL);
  if (more.length > 0 || manifest.audit?.run_ids.includes(run_id) !== true) {
    findings.add('bundle.run_missing', INFO_PATH, `the export run ${quoteExcerpt(run_id)} is not in the bundle`);
  }
}

const factsOf = (manifest: ExportBundle, artifacts: number): ExportBagFacts => ({
  bundle_id: manifest.bundle_id,
  bundle_kind: manifest.bundle_kind,
  case_id: manifest.case_id ?? null,
  created_at_utc: manifest.created_at_utc,
  manifest_hash_sha256: manifest.integrity?.manifest_hash_sha256 ?? null,
  artifacts,
  audit_events: manifest.audit?.audit_event_ids.length ?? 0,
  runs: manifest.audit?.run_ids.length ?? 0,
});

// Rejects a bag without the signature of the key before reading it: hashing a large bag takes minutes.

/**
 * @returns the report of a bag whose proof the key has not signed; null for any other bag, which is then verified
 * @throws BagError BAG_UNREADABLE or BAG_HOSTILE if the tree cannot be listed
 */
async function checkBagSignature(tree: BagTree, key: NoteVerifier): Promise<ExportBagReport | null> {
  if (!(await hasFile(tree, PROOF_PATH))) return null;
  const read = await readProofCheckpoint(tree);
  if (read === null) {
    // A later version may prove its bags in another way.
    refuseOtherBag(await readBeginOfInfo(tree));
    return REFUSED_REPORT;
  }
  const { checkpoint, chain } = read;
  const own = readRotation(chain.at(-1) ?? '')?.rotation.new_key ?? key.vkey;
  const keys = followKeys(key, { key: own, chain });
  const isSigned = typeof keys !== 'string' && openCheckpoint(Buffer.from(checkpoint), keys) !== null;
  return isSigned ? null : REFUSED_REPORT;
}

/** Of bag-info.txt; nothing for a missing or an unreadable file. */
async function readBeginOfInfo(tree: BagTree): Promise<readonly InfoElement[]> {
  if (!(await hasFile(tree, INFO_PATH))) return [];
  let text = '';
  try {
    for await (const piece of tree.read(INFO_PATH)) {
      text += Buffer.from(piece).toString('latin1');
      if (text.length > INFO_CHARACTERS_MAX) break;
    }
  } catch (error) {
    if (error instanceof BagError) return [];
    throw error;
  }
  return parseBagInfo(text.slice(0, INFO_CHARACTERS_MAX).split(/\r?\n/), { major: 1, minor: 0 }).elements;
}

async function hasFile(tree: BagTree, path: string): Promise<boolean> {
  for await (const entry of tree.entries()) if (entry.kind === 'file' && entry.path === path) return true;
  return false;
}

/** In canonical JSON the chain of the key and the checkpoint are the first members. */
const FIRST_MEMBERS = /^\{(?:"chain":(\[(?:"(?:[^"\\]|\\.)*",?)*\]),)?"checkpoint":("(?:[^"\\]|\\.)*")/;
const FIRST_CHARACTERS_MAX = 2 * CHECKPOINT_CHARACTERS_MAX;
const CHAIN_CHARACTERS_MAX = 524_288;

interface ProofHead {
  readonly checkpoint: string;
  readonly chain: readonly string[];
}

/** The first bytes of the proof; null for a malformed proof. */
async function readProofCheckpoint(tree: BagTree): Promise<ProofHead | null> {
  let head = '';
  // A piece may end inside a character.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  try {
    for await (const piece of tree.read(PROOF_PATH)) {
      head += decoder.decode(piece, { stream: true });
      if (head.length > FIRST_CHARACTERS_MAX + (head.startsWith('{"chain":') ? CHAIN_CHARACTERS_MAX : 0)) break;
    }
    const [, chain = '[]', text] = FIRST_MEMBERS.exec(head) ?? [];
    if (text === undefined) return null;
    return { checkpoint: parseOwnJson(text) as string, chain: parseOwnJson(chain) as readonly string[] };
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
