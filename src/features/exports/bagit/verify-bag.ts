// Checks whether a bag is complete and valid (RFC 8493 3), also for versions 0.93 to 0.97. It fetches and writes
// nothing and reads no file twice. Memory grows with the number of files, never with their size.

import type { BagTree } from '../../../engine/ports/bag-tree.js';
import {
  parseBagInfo,
  parseOxum,
  infoValuesOf,
  type InfoElement,
  parseDeclaration,
  type Declaration,
} from './bag-info.js';
import { checkCoverage, ListedFiles, readFetch, readManifest } from './listed-files.js';
import { BagFindings, type BagFinding } from './bag-finding.js';
import {
  algorithmsOf,
  readBagFile,
  takeInventory,
  type FileRecord,
  type Inventory,
  type BagReadContext,
  BAG_LIMITS,
  type BagLimits,
} from './inventory.js';
import {
  isAlgorithm,
  parseManifestName,
  WEAK_ALGORITHMS,
  type Algorithm,
  type ManifestFile,
  isPayload,
} from './manifest.js';

export interface BagReport {
  /** Complete, and every file matches the manifests. */
  readonly valid: boolean;
  readonly version: string | null;
  readonly encoding: string | null;
  /** The algorithms of the payload manifests. */
  readonly algorithms: readonly Algorithm[];
  readonly payload: { readonly files: number; readonly bytes: number };
  /** The elements of bag-info.txt, in order. Attacker-controlled. */
  readonly info: readonly InfoElement[];
  /** SHA-256 of tagmanifest-sha256.txt, which identifies the whole bag. Null if it is missing. */
  readonly tag_manifest_sha256: string | null;
  readonly findings: readonly BagFinding[];
  /** The number of findings beyond `findings_max`. */
  readonly findings_dropped: number;
}

/** The report, and the files with their digests as far as a manifest lists them. */
export interface InspectedBag {
  readonly report: BagReport;
  /** By path. Empty if the tree could not be listed to its end. */
  readonly files: ReadonlyMap<string, FileRecord>;
}

/** Verifies a bag, and lists its files for further checks. @throws BagError if the tree cannot be listed */
export async function inspectBag(tree: BagTree, limits: Partial<BagLimits> = {}): Promise<InspectedBag> {
  const applied = { ...BAG_LIMITS, ...limits };
  const findings = new BagFindings(applied.findings_max);
  const inventory = await takeInventory(tree, findings, applied);
  const found = inventory === null ? null : await readBag(tree, inventory, findings, applied);
  const report: BagReport = {
    valid: findings.errors === 0,
    version: found?.version ?? null,
    encoding: found?.encoding ?? null,
    algorithms: found?.algorithms ?? [],
    payload: inventory?.payload ?? { files: 0, bytes: 0 },
    info: found?.info ?? [],
    tag_manifest_sha256: inventory?.files.get('tagmanifest-sha256.txt')?.actual?.sha256 ?? null,
    findings: findings.list(),
    findings_dropped: findings.dropped,
  };
  return { report, files: inventory?.files ?? new Map<string, FileRecord>() };
}

type BagContents = Pick<BagReport, 'version' | 'encoding' | 'algorithms' | 'info'>;

async function readBag(
  tree: BagTree,
  inventory: Inventory,
  findings: BagFindings,
  limits: BagLimits,
): Promise<BagContents | null> {
  if (!inventory.hasPayloadDirectory) findings.add('payload.directory_missing', 'data', 'there is no directory data');
  const manifests = manifestsOf(inventory, findings, limits);
  const algorithms = [...new Set(manifests.map(({ algorithm }) => algorithm))];
  const context: BagReadContext = { tree, findings, limits, algorithms };
  const declaration = await readDeclaration(context, inventory);
  if (declaration === null) return null;
  const { version, encoding } = declaration;
  const info = await readInfo(context, inventory, declaration);
  const listed = new ListedFiles(inventory, findings, version);
  await readFetch(context, listed, declaration);
  for (const manifest of manifests) await readManifest(context, listed, declaration, manifest);
  await compareFiles(context, inventory);
  checkCoverage(inventory, listed, manifests, findings);
  return {
    version: `${version.major}.${version.minor}`,
    encoding,
    algorithms: manifests.filter(({ kind }) => kind === 'payload').map(({ algorithm }) => algorithm),
    info,
  };
}

/** The existing manifests of supported algorithms. */
function manifestsOf({ files }: Inventory, findings: BagFindings, limits: BagLimits): readonly ManifestFile[] {
  const found: ManifestFile[] = [];
  for (const path of files.keys()) {
    const name = parseManifestName(path);
    if (name === null) continue;
    if (found.length >= limits.manifests_max) findings.add('tree.limit', path, 'too many manifests');
    else if (isAlgorithm(name.algorithm)) found.push({ path, kind: name.kind, algorithm: name.algorithm });
    else findings.add('manifest.algorithm_unknown', path, 'what it says cannot be verified');
  }
  const payload = found.filter(({ kind }) => kind === 'payload');
  if (payload.length === 0) findings.add('manifest.missing', null, 'there is no payload manifest that can be read');
  else if (payload.every(({ algorithm }) => WEAK_ALGORITHMS.includes(algorithm))) {
    findings.add('manifest.algorithm_weak', null, 'two files with one digest can be made on purpose');
  }
  return found.sort((one, other) => (one.path < other.path ? -1 : 1));
}

async function readDeclaration(context: BagReadContext, { files }: Inventory): Promise<Declaration | null> {
  const { findings, limits } = context;
  const record = files.get('bagit.txt');
  if (record === undefined) {
    findings.add('declaration.missing', 'bagit.txt', 'there is no bagit.txt');
    return null;
  }
  const lines: string[] = [];
  const text = {
    encoding: 'UTF-8',
    bytes_max: limits.declaration_bytes_max,
    onLine: (line: string) => void lines.push(line),
  } as const;
  const known = findings.list().length;
  if (!(await readBagFile(context, record, text))) return null;
  // In bagit.txt a byte order mark is an error, even if the rest is valid.
  const hasByteOrderMark = findings
    .list()
    .slice(known)
    .some(({ rule_id }) => rule_id === 'text.byte_order_mark');
  const parsed = hasByteOrderMark ? ({ broken: 'declaration.malformed' } as const) : parseDeclaration(lines);
  if ('broken' in parsed) {
    findings.add(parsed.broken, 'bagit.txt', 'bagit.txt does not say how to read this bag');
    return null;
  }
  if (parsed.loose) findings.add('declaration.loose_whitespace', 'bagit.txt', 'there are spaces that need not be');
  return parsed.declaration;
}

async function readInfo(
  context: BagReadContext,
  inventory: Inventory,
  { version, encoding }: Declaration,
): Promise<readonly InfoElement[]> {
  const { findings, limits } = context;
  // The name of the file until version 0.95.
  const path = version.major === 0 && version.minor < 96 ? 'package-info.txt' : 'bag-info.txt';
  const record = inventory.files.get(path);
  if (record === undefined) return [];
  const lines: string[] = [];
  const text = { encoding, bytes_max: limits.info_bytes_max, onLine: (line: string) => void lines.push(line) };
  if (!(await readBagFile(context, record, text))) return [];
  const { elements, malformed } = parseBagInfo(lines, version);
  for (const line of malformed.slice(0, 1)) findings.add('info.line_malformed', path, `line ${line} is no element`);
  checkOxum(elements, inventory, path, findings);
  return elements;
}

function checkOxum(
  elements: readonly InfoElement[],
  { payload }: Inventory,
  path: string,
  findings: BagFindings,
): void {
  const values = infoValuesOf(elements, 'Payload-Oxum');
  if (values.length > 1) findings.add('info.oxum_repeated', path, 'Payload-Oxum is there more than once');
  for (const value of values) {
    const oxum = parseOxum(value);
    if (oxum === null) findings.add('info.oxum_malformed', path, 'Payload-Oxum is not bytes.files');
    else if (oxum.bytes !== payload.bytes || oxum.files !== payload.files) {
      const actual = `${payload.bytes}.${payload.files}`;
      findings.add('info.oxum_mismatch', path, `Payload-Oxum is ${value}, but the payload is ${actual}`);
    }
  }
}

/** Reads the remaining files that a manifest lists, and compares their digests. */
async function compareFiles(context: BagReadContext, { files }: Inventory): Promise<void> {
  for (const [path, record] of files) {
    const expected = algorithmsOf(record.expected);
    if (expected.length === 0) continue;
    if (record.actual === null && !(await readBagFile(context, record, null))) continue;
    const wrong = expected.filter((algorithm) => record.actual?.[algorithm] !== record.expected[algorithm]);
    if (wrong.length === 0) continue;
    const rule = isPayload(path) ? 'payload.digest_mismatch' : 'tag.digest_mismatch';
    context.findings.add(rule, path, `it does not have the digest that is listed (${wrong.join(', ')})`);
  }
}
