// Writes a bag of version 1.0 in one pass, hashing the bytes that it writes. The same payload and options give the same
// bytes, independent of writer, time and place. So the payload must be sorted, and no clock is read.

import { createHash, type Hash } from 'node:crypto';
import { usageError } from '../../../core/errors.js';
import type { BagSink } from '../../../engine/ports/bag-tree.js';
import { infoValuesOf, writeBagInfo, writeOxum, type InfoElement, DECLARATION_1_0 } from './bag-info.js';
import { manifestName, writeManifestLine, PAYLOAD_DIRECTORY, findPathProblem } from './manifest.js';

export interface PayloadFile {
  /** Relative to `data/`. */
  readonly path: string;
  readonly content: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

export interface BagOptions {
  /** `YYYY-MM-DD`. */
  readonly bagging_date: string;
  /** Further elements of bag-info.txt, in this order, before Bagging-Date and Payload-Oxum. */
  readonly info?: readonly InfoElement[];
}

export interface WrittenBag {
  readonly payload: { readonly files: number; readonly bytes: number };
  /** SHA-256 of tagmanifest-sha256.txt, which identifies the whole bag. */
  readonly tag_manifest_sha256: string;
}

/** Every bag has both, because one of them may be broken one day. */
const WRITTEN_ALGORITHMS = ['sha256', 'sha512'] as const;
type WrittenAlgorithm = (typeof WRITTEN_ALGORITHMS)[number];
/** Characters per piece in which texts are written. */
const PIECE_CHARACTERS = 65_536;

interface HashedFile {
  readonly path: string;
  readonly digests: Readonly<Record<WrittenAlgorithm, string>>;
  readonly bytes: number;
}

/** The required order of the payload: by UTF-16 code units. */
export const byPath = (one: { readonly path: string }, other: { readonly path: string }): number =>
  one.path < other.path ? -1 : one.path > other.path ? 1 : 0;

/**
 * Writes `payload` as a bag into `sink`. After an error nothing of it remains.
 * @throws UsageError for an invalid, unordered or repeated path, and for invalid elements
 * @throws BagError BAG_EXISTS, BAG_UNWRITABLE; and whatever `payload` throws
 */
export async function writeBag(
  sink: BagSink,
  payload: AsyncIterable<PayloadFile>,
  options: BagOptions,
): Promise<WrittenBag> {
  try {
    const written = await writeInto(sink, payload, options);
    await sink.finish();
    return written;
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

async function writeInto(sink: BagSink, payload: AsyncIterable<PayloadFile>, options: BagOptions): Promise<WrittenBag> {
  checkOptions(options);
  const tags = [await writeFile(sink, 'bagit.txt', Buffer.from(DECLARATION_1_0))];
  await sink.writeDirectory('data');
  const files = await writePayload(sink, payload);
  const oxum = { files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
  const info = writeBagInfo([
    ...(options.info ?? []),
    { label: 'Bagging-Date', value: options.bagging_date },
    { label: 'Payload-Oxum', value: writeOxum(oxum) },
  ]);
  tags.push(await writeFile(sink, 'bag-info.txt', Buffer.from(info)));
  for (const algorithm of WRITTEN_ALGORITHMS) {
    tags.push(await writeFile(sink, manifestName('payload', algorithm), encodeTexts(linesOf(files, algorithm))));
  }
  tags.sort(byPath);
  let tag_manifest_sha256 = '';
  for (const algorithm of WRITTEN_ALGORITHMS) {
    const { digests } = await writeFile(sink, manifestName('tag', algorithm), encodeTexts(linesOf(tags, algorithm)));
    if (algorithm === 'sha256') tag_manifest_sha256 = digests.sha256;
  }
  return { payload: oxum, tag_manifest_sha256 };
}

function checkOptions({ bagging_date, info = [] }: BagOptions): void {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(bagging_date)) throw usageError('bagging_date is not YYYY-MM-DD');
  const own = ['Bagging-Date', 'Payload-Oxum'].find((label) => infoValuesOf(info, label).length > 0);
  if (own !== undefined) throw usageError(`${own} is written by itself`);
  writeBagInfo(info);
}

async function writePayload(sink: BagSink, payload: AsyncIterable<PayloadFile>): Promise<readonly HashedFile[]> {
  const listed: HashedFile[] = [];
  const paths = new Set<string>();
  let last = '';
  for await (const file of payload) {
    const path = `${PAYLOAD_DIRECTORY}${file.path}`;
    const pathProblem = file.path.startsWith('/') ? 'it is absolute' : findPathProblem(path);
    if (pathProblem !== null) throw usageError(`${JSON.stringify(file.path)} cannot be in a bag: ${pathProblem}`);
    if (path <= last) throw usageError(`${JSON.stringify(file.path)} comes twice, or after a path that is behind it`);
    // In this order, a file comes before anything that would lie below it.
    const above = parentsOf(path).find((parent) => paths.has(parent));
    if (above !== undefined) throw usageError(`${JSON.stringify(above)} is a file and a directory`);
    last = path;
    paths.add(path);
    listed.push(await writeFile(sink, path, file.content));
  }
  return listed;
}

function parentsOf(path: string): readonly string[] {
  const parents: string[] = [];
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) parents.push(path.slice(0, at));
  return parents;
}

async function writeFile(sink: BagSink, path: string, content: PayloadFile['content']): Promise<HashedFile> {
  const hashes = { sha256: createHash('sha256'), sha512: createHash('sha512') };
  const counter = { bytes: 0 };
  await sink.writeFile(path, hashChunks(content, Object.values(hashes), counter));
  return { path, digests: { sha256: hashes.sha256.digest('hex'), sha512: hashes.sha512.digest('hex') }, ...counter };
}

async function* hashChunks(
  content: PayloadFile['content'],
  hashes: readonly Hash[],
  counter: { bytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of content instanceof Uint8Array ? [content] : content) {
    for (const hash of hashes) hash.update(chunk);
    counter.bytes += chunk.length;
    yield chunk;
  }
}

function* linesOf(files: readonly HashedFile[], algorithm: WrittenAlgorithm): Generator<string> {
  for (const { path, digests } of files) yield writeManifestLine(digests[algorithm], path);
}

/** Texts as one content, whose pieces are large whatever the size of the texts is. */
export function* encodeTexts(texts: Iterable<string>): Generator<Uint8Array> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}
