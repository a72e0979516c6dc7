// Compares the manifests and fetch.txt with the files of a bag.

import type { BagFindings, BagRule } from './bag-finding.js';
import type { Declaration } from './bag-info.js';
import { readBagFile, type FileRecord, type Inventory, type BagReadContext } from './inventory.js';
import {
  parseFetchLine,
  parseManifestLine,
  type ManifestFile,
  type ManifestLine,
  type PathOddity,
  parseManifestName,
  isBefore1,
  isPayload,
  type BagVersion,
} from './manifest.js';

const ODDITIES: Readonly<Record<PathOddity, readonly [BagRule, string]>> = {
  asterisk: ['manifest.path_asterisk', 'an asterisk stands before it, as the md5sum tools write it'],
  relative: ['manifest.path_relative', 'it is written with ./ before it'],
  percent: ['manifest.path_percent', 'a percent sign in it is not encoded'],
};

type ParsedManifestLine = Exclude<ManifestLine, string>;

export class ListedFiles {
  readonly inventory: Inventory;
  readonly findings: BagFindings;
  readonly version: BagVersion;
  /** The files that each manifest lists. */
  readonly #listed = new Map<string, Set<FileRecord>>();
  /** The paths of fetch.txt; true once a payload manifest has listed the path, too. */
  readonly #fetch = new Map<string, boolean>();

  constructor(inventory: Inventory, findings: BagFindings, version: BagVersion) {
    this.inventory = inventory;
    this.findings = findings;
    this.version = version;
  }

  isListed(manifest: string, record: FileRecord): boolean {
    return this.#listed.get(manifest)?.has(record) === true;
  }

  /** The paths of fetch.txt that no payload manifest lists. */
  *unlistedFetchPaths(): Generator<string> {
    for (const [path, listed] of this.#fetch) if (!listed) yield path;
  }

  addFetch(path: string, entries_max: number): boolean {
    if (this.#fetch.size >= entries_max) return false;
    this.#fetch.set(path, false);
    return true;
  }

  /** Processes one line of a manifest. */
  addLine(manifest: ManifestFile, line: ParsedManifestLine): void {
    const { path } = line;
    for (const oddity of line.oddities) this.findings.add(ODDITIES[oddity][0], path, ODDITIES[oddity][1]);
    if (line.problem !== null) {
      this.findings.add('manifest.path_unfit', path, line.problem);
      return;
    }
    if (isMisplaced(manifest.kind, path)) {
      this.findings.add('manifest.path_misplaced', path, `${manifest.path} must not list it`);
      return;
    }
    if (manifest.kind === 'payload' && this.#fetch.has(path)) this.#fetch.set(path, true);
    const exact = this.inventory.files.get(path);
    const record = exact ?? this.inventory.twinOf(path);
    if (record === null || isMisplaced(manifest.kind, record.path)) this.#reportMissing(manifest, path);
    else this.#expect(manifest, line, record, exact === undefined);
  }

  #reportMissing(manifest: ManifestFile, path: string): void {
    if (manifest.kind === 'tag') this.findings.add('tag.file_missing', path, `${manifest.path} lists it`);
    else if (this.#fetch.has(path)) this.findings.add('payload.file_not_fetched', path, 'fetch.txt says where it is');
    else this.findings.add('payload.file_missing', path, `${manifest.path} lists it`);
  }

  #expect(manifest: ManifestFile, { path, digest }: ParsedManifestLine, record: FileRecord, isTwin: boolean): void {
    const listed = this.#listed.get(manifest.path) ?? new Set<FileRecord>();
    this.#listed.set(manifest.path, listed);
    // The bag was made on a file system on which both names are one file.
    if (isTwin) this.findings.add('manifest.path_twin', path, `what is there is ${record.path}`);
    const former = record.expected[manifest.algorithm];
    if (former !== undefined && former !== digest) {
      this.findings.add('manifest.contradictory', path, `${manifest.path} lists it with two digests`);
    } else if (listed.has(record) && !isTwin) {
      const rule = isBefore1(this.version) ? 'manifest.repeated_before_1_0' : 'manifest.repeated';
      this.findings.add(rule, path, `${manifest.path} lists it twice`);
    }
    listed.add(record);
    record.expected[manifest.algorithm] = digest;
  }
}

/** A payload manifest lists the payload; a tag manifest lists the rest, except tag manifests. */
const isMisplaced = (kind: ManifestFile['kind'], path: string): boolean =>
  kind === 'payload' ? !isPayload(path) : isPayload(path) || /^tagmanifest-[^/]+\.txt$/i.test(path);

export async function readManifest(
  context: BagReadContext,
  listed: ListedFiles,
  declaration: Declaration,
  manifest: ManifestFile,
): Promise<void> {
  const { findings } = context;
  await readLines(context, listed, declaration, manifest.path, (text, number) => {
    const line = parseManifestLine(text, manifest.algorithm, declaration.version);
    if (line === 'blank') findings.add('manifest.line_blank', manifest.path, `line ${number} is empty`);
    else if (line === 'malformed') {
      findings.add('manifest.line_malformed', manifest.path, `line ${number} is no digest and path`);
    } else listed.addLine(manifest, line);
  });
}

export async function readFetch(context: BagReadContext, listed: ListedFiles, declaration: Declaration): Promise<void> {
  const { findings, limits } = context;
  await readLines(context, listed, declaration, 'fetch.txt', (text, number) => {
    const line = parseFetchLine(text, declaration.version);
    if (line === 'blank') findings.add('manifest.line_blank', 'fetch.txt', `line ${number} is empty`);
    else if (line === 'malformed') {
      findings.add('fetch.line_malformed', 'fetch.txt', `line ${number} is no URL, length and path`);
    } else if (line.problem !== null || !isPayload(line.path)) {
      findings.add('fetch.path_unfit', line.path, line.problem ?? 'it is outside of data/');
    } else if (!listed.addFetch(line.path, limits.entries_max)) {
      findings.add('tree.limit', 'fetch.txt', `more than ${limits.entries_max} files`);
    }
  });
}

/** Reads a tag file, unless it is missing. Lines are numbered from 1. */
async function readLines(
  context: BagReadContext,
  { inventory }: ListedFiles,
  { encoding }: Declaration,
  path: string,
  onLine: (text: string, number: number) => void,
): Promise<void> {
  const record = inventory.files.get(path);
  if (record === undefined) return;
  let number = 0;
  await readBagFile(context, record, {
    encoding,
    bytes_max: context.limits.manifest_bytes_max,
    onLine: (text) => onLine(text, (number += 1)),
  });
}

/**
 * Checks that the manifests list every file. From version 1.0 on, every payload manifest lists every payload file, and
 * every tag manifest every payload manifest. Before, one payload manifest per file was enough.
 */
export function checkCoverage(
  { files }: Inventory,
  listed: ListedFiles,
  manifests: readonly ManifestFile[],
  findings: BagFindings,
): void {
  const isOld = isBefore1(listed.version);
  const payload = manifests.filter(({ kind }) => kind === 'payload');
  const tag = manifests.filter(({ kind }) => kind === 'tag');
  if (tag.length === 0) findings.add('tag.manifest_missing', null, 'nothing vouches for the files beside the payload');
  for (const record of files.values()) {
    if (isPayload(record.path)) checkPayload(record, payload, listed, isOld);
    else checkTag(record, tag, listed, isOld);
  }
  for (const path of listed.unlistedFetchPaths()) {
    findings.add('fetch.path_unlisted', path, 'fetch.txt names it, but no payload manifest lists it');
  }
}

function checkPayload(
  record: FileRecord,
  manifests: readonly ManifestFile[],
  listed: ListedFiles,
  isOld: boolean,
): void {
  const missingIn = manifests.filter(({ path }) => !listed.isListed(path, record));
  const isCovered = isOld ? missingIn.length < manifests.length : missingIn.length === 0;
  const names = missingIn.map(({ path }) => path).join(', ');
  if (!isCovered) listed.findings.add('payload.file_unlisted', record.path, `it is not listed in ${names}`);
}

function checkTag(record: FileRecord, manifests: readonly ManifestFile[], listed: ListedFiles, isOld: boolean): void {
  const name = parseManifestName(record.path);
  if (name?.kind === 'tag') return;
  const missingIn = manifests.filter(({ path }) => !listed.isListed(path, record));
  if (missingIn.length === 0) return;
  const rule = name !== null && !isOld ? 'tag.manifest_unlisted' : 'tag.file_unlisted';
  listed.findings.add(rule, record.path, `it is not listed in ${missingIn.map(({ path }) => path).join(', ')}`);
}
