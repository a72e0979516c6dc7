// Lists the files of a tree before any is read, and reads each file exactly once.

import { createHash } from 'node:crypto';
import { BagError } from '../../../core/errors.js';
import type { BagTree, BagTreeProblem } from '../../../engine/ports/bag-tree.js';
import type { BagFindings } from './bag-finding.js';
import { type Algorithm, normalizePath, isPayload, isPortable, isSystemFile, findPathProblem } from './manifest.js';
import { LineReader, type TagEncoding } from './line-reader.js';

/** Limits of a bag, because all of its bytes are untrusted. A caller may lower each of them. */
export const BAG_LIMITS = {
  /** Files, directories and rejected entries together. */
  entries_max: 110_000,
  /** All files together. */
  bytes_max: 2 ** 40,
  /** bagit.txt. */
  declaration_bytes_max: 4_096,
  /** bag-info.txt. */
  info_bytes_max: 1_048_576,
  /** One manifest, and fetch.txt. */
  manifest_bytes_max: 268_435_456,
  /** One line in any of these files. */
  line_characters_max: 16_384,
  /** Manifests of both kinds. */
  manifests_max: 24,
  /** Recorded findings; further ones are only counted. */
  findings_max: 1_000,
} as const satisfies Record<string, number>;
export type BagLimits = { readonly [Name in keyof typeof BAG_LIMITS]: number };

export type Digests = Partial<Record<Algorithm, string>>;

export interface FileRecord {
  readonly path: string;
  /** The size that the tree reports. Reading stops there, and a shorter file is a finding. */
  readonly bytes: number;
  /** Digests of the manifests, one per algorithm. */
  readonly expected: Digests;
  /** Computed digests; null until the file is read. */
  actual: Digests | null;
}

export interface Inventory {
  readonly files: ReadonlyMap<string, FileRecord>;
  readonly hasPayloadDirectory: boolean;
  readonly payload: { readonly files: number; readonly bytes: number };
  /** The file whose path differs from this one only in case or normalization, if there is exactly one. */
  twinOf(path: string): FileRecord | null;
}

const REASONS: Readonly<Record<BagTreeProblem, string>> = {
  symlink: 'it is a symbolic link',
  special_file: 'it is neither a file nor a directory',
  name_unfit: 'its name cannot be one of a bag',
  duplicate_name: 'something else has its name',
  encrypted: 'it is encrypted',
  compression_method: 'it is compressed in a way that is not known',
  compression_ratio: 'it would grow too much',
  contradiction: 'the archive contradicts itself about it',
};

/** Null if the tree cannot be listed to its end: then nothing else can be said about it. */
export async function takeInventory(
  tree: BagTree,
  findings: BagFindings,
  limits: BagLimits,
): Promise<Inventory | null> {
  const files = new Map<string, FileRecord>();
  const payload = { files: 0, bytes: 0 };
  let [entries, bytes, hasPayloadDirectory] = [0, 0, false];
  for await (const entry of tree.entries()) {
    const { path } = entry;
    entries += 1;
    if (entries > limits.entries_max) return reportLimit(findings, `more than ${limits.entries_max} entries`);
    if (entry.kind === 'refused') findings.add('tree.refused', path, REASONS[entry.reason]);
    const pathProblem = entry.kind === 'refused' ? null : findPathProblem(path);
    if (pathProblem !== null) findings.add('tree.name_unfit', path, pathProblem);
    if (path === 'data' ? entry.kind === 'directory' : isPayload(path)) hasPayloadDirectory = true;
    if (entry.kind !== 'file' || pathProblem !== null) continue;
    bytes += entry.bytes;
    if (bytes > limits.bytes_max) return reportLimit(findings, `more than ${limits.bytes_max} bytes`);
    files.set(path, { path, bytes: entry.bytes, expected: {}, actual: null });
    if (isPayload(path)) {
      payload.files += 1;
      payload.bytes += entry.bytes;
    }
    checkName(path, findings);
  }
  return { files, hasPayloadDirectory, payload, twinOf: indexTwins(files, findings) };
}

function reportLimit(findings: BagFindings, limit: string): null {
  findings.add('tree.limit', null, limit);
  return null;
}

function checkName(path: string, findings: BagFindings): void {
  if (isSystemFile(path)) findings.add('path.system_file', path, 'a file that operating systems make by themselves');
  else if (!isPortable(path)) findings.add('path.not_portable', path, 'some file systems do not take this name');
}

function indexTwins(files: ReadonlyMap<string, FileRecord>, findings: BagFindings): Inventory['twinOf'] {
  const folded = new Map<string, FileRecord | null>();
  for (const [path, record] of files) {
    const key = normalizePath(path);
    if (folded.has(key)) findings.add('path.twin', path, 'another file differs only in case or in normal form');
    folded.set(key, folded.has(key) ? null : record);
  }
  return (path) => folded.get(normalizePath(path)) ?? null;
}

export interface BagReadContext {
  readonly tree: BagTree;
  readonly findings: BagFindings;
  readonly limits: BagLimits;
  /** The minimum of algorithms by which every file that is read is hashed. */
  readonly algorithms: readonly Algorithm[];
}

/** How the text of a tag file is decoded and passed on. */
export interface TextReader {
  readonly encoding: TagEncoding;
  readonly bytes_max: number;
  onLine(line: string): void;
}

/**
 * Reads a file once, from beginning to end, so that the parsed bytes are the hashed ones.
 * @returns whether it was read to its end; if not, a finding says why
 */
export async function readBagFile(
  context: BagReadContext,
  record: FileRecord,
  text: TextReader | null,
): Promise<boolean> {
  const { tree, findings, limits } = context;
  const { path, bytes } = record;
  if (text !== null && bytes > text.bytes_max) {
    findings.add('tree.limit', path, `more than ${text.bytes_max} bytes`);
    return false;
  }
  const algorithms = new Set([...(text === null ? [] : context.algorithms), ...algorithmsOf(record.expected)]);
  const hashes = [...algorithms].map((algorithm) => ({ algorithm, hash: createHash(algorithm) }));
  const lines = text === null ? null : new LineReader(text.encoding, limits.line_characters_max);
  let count = 0;
  try {
    for await (const chunk of tree.read(path)) {
      count += chunk.length;
      if (count > bytes)
        return reportUnreadable(findings, path, `it is longer than the ${bytes} bytes that were announced`);
      for (const { hash } of hashes) hash.update(chunk);
      if (lines !== null && text !== null && !passLines(lines.push(chunk), text, path, findings)) return false;
    }
  } catch (error) {
    if (!(error instanceof BagError)) throw error;
    return reportUnreadable(findings, path, error.message);
  }
  if (count < bytes)
    return reportUnreadable(findings, path, `it is shorter than the ${bytes} bytes that were announced`);
  if (lines !== null && text !== null && !passLines(lines.end(), text, path, findings)) return false;
  record.actual = Object.fromEntries(hashes.map(({ algorithm, hash }) => [algorithm, hash.digest('hex')]));
  if (lines?.hasByteOrderMark === true && text?.encoding === 'UTF-8') {
    findings.add('text.byte_order_mark', path, 'it begins with a byte order mark');
  }
  return true;
}

export const algorithmsOf = (digests: Digests): readonly Algorithm[] => Object.keys(digests) as Algorithm[];

function reportUnreadable(findings: BagFindings, path: string, message: string): false {
  findings.add('tree.unreadable', path, message);
  return false;
}

function passLines(
  lines: ReturnType<LineReader['end']>,
  text: TextReader,
  path: string,
  findings: BagFindings,
): boolean {
  if (lines === 'encoding') findings.add('text.encoding', path, `it is not ${text.encoding}`);
  else if (lines === 'line') findings.add('tree.limit', path, 'a line is too long');
  else for (const line of lines) text.onLine(line);
  return typeof lines !== 'string';
}
