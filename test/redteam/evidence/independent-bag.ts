// The independent checker of bags and archives: its own manifests, its own proof, its own two ways to read an archive.

import { inflateRawSync } from 'node:zlib';
import { createHash } from 'node:crypto';
import { hashOf, keyOf, readNote, statesOf, type EntryOf } from './independent.js';

export type Files = Readonly<Record<string, Buffer>>;

const leafOf = (text: string): Buffer => createHash('sha256').update('\0').update(text).digest();
const nodeOf = (left: Buffer, right: Buffer): Buffer =>
  createHash('sha256').update(Buffer.of(1)).update(left).update(right).digest();
const linesIn = (bytes: Buffer | undefined): string[] => (bytes ?? Buffer.alloc(0)).toString().split('\n').slice(0, -1);

/** The root of a log of which some leaves are known, and the hashes of all perfect subtrees without one. */
export function rootWith(size: number, known: ReadonlyMap<number, Buffer>, hashes: readonly string[]): string | null {
  const rest = [...hashes];
  const members = [...known.keys()].sort((one, other) => one - other);
  const has = (from: number, to: number): boolean => members.some((index) => index >= from && index < to);
  const root = (from: number, to: number): Buffer => {
    const width = to - from;
    const leaf = width === 1 ? known.get(from) : undefined;
    if (leaf !== undefined) return leaf;
    if ((width & (width - 1)) === 0 && !has(from, to)) {
      const hash = rest.shift();
      if (hash === undefined) throw new RangeError('too few hashes');
      return Buffer.from(hash, 'hex');
    }
    let split = 1;
    while (split * 2 < width) split *= 2;
    const left = root(from, from + split);
    return nodeOf(left, root(from + split, to));
  };
  try {
    const found = root(0, size).toString('hex');
    return rest.length === 0 && members.every((index) => index < size) ? found : null;
  } catch {
    return null;
  }
}

/** Whether every payload file, and nothing else, is in the SHA-256 manifest with its hash. */
function manifestProblem(files: Files): string | null {
  const listed = new Map(linesIn(files['manifest-sha256.txt']).map((line) => [line.slice(66), line.slice(0, 64)]));
  const payload = Object.keys(files).filter((path) => path.startsWith('data/'));
  const wrong = payload.find((path) => listed.get(path) !== hashOf(files[path]!));
  if (wrong !== undefined) return `manifest: ${wrong}`;
  return listed.size === payload.length ? null : 'manifest: lists what is not there';
}

interface Manifest {
  readonly case_id: string;
  readonly contents: { readonly artifacts: readonly { readonly hash_sha256: string }[] };
  readonly audit: { readonly audit_event_ids: readonly string[]; readonly run_ids: readonly string[] };
  readonly integrity: { readonly manifest_hash_sha256: string };
}

/** Canonical JSON of values with ASCII keys and whole numbers. */
const canonical = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(canonical).join()}]`
    : typeof value === 'object' && value !== null
      ? `{${Object.entries(value)
          .sort(([one], [other]) => (one < other ? -1 : 1))
          .map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`)
          .join()}}`
      : JSON.stringify(value);

/** A certain violation in a bag that was accepted as authenticated by this key; otherwise null. */
export function bagProblem(files: Files, vkey: string): string | null {
  const listed = manifestProblem(files);
  if (listed !== null) return listed;
  const proofFile = files['data/proof.json'];
  if (proofFile === undefined) return 'no proof';
  const proof = JSON.parse(proofFile.toString()) as { checkpoint: string; hashes: string[] };
  const note = readNote(proof.checkpoint, keyOf(vkey));
  if (note === null) return 'proof not signed';
  const manifest = JSON.parse(files['data/manifest.json']!.toString()) as Manifest;
  const { integrity, ...bare } = manifest;
  if (hashOf(canonical(bare)) !== integrity.manifest_hash_sha256) return 'manifest hash';
  const entries_sha256 = hashOf(files['data/entries.jsonl']!);
  const digest = hashOf(canonical({ entries_sha256, manifest_hash_sha256: integrity.manifest_hash_sha256 }));
  if (note.extra !== `bag sha256:${digest}`) return 'signed for another bag';
  const lines = linesIn(files['data/entries.jsonl']).map(
    (line) => JSON.parse(line) as { entry: string; index: number },
  );
  const known = new Map(lines.map(({ entry, index }) => [index, leafOf(entry)]));
  if (known.size !== lines.length || rootWith(note.size, known, proof.hashes) !== note.root) return 'another root';
  return contentsProblem(
    files,
    manifest,
    lines.map(({ entry }) => entry),
  );
}

function contentsProblem(files: Files, manifest: Manifest, texts: readonly string[]): string | null {
  const entries = texts.map((text) => JSON.parse(text) as EntryOf);
  const own = new Set(
    entries.flatMap(({ type, body }) =>
      type === 'run_created' && body['case_id'] === manifest.case_id ? [String(body['run_id'])] : [],
    ),
  );
  const events = entries.filter(({ type, body }) => type === 'audit_event' && own.has(String(body['run_id'])));
  const audit = events.map(({ body }) => `${canonical(body)}\n`).join('');
  if (files['data/audit.jsonl']?.toString() !== audit) return 'events that are not in the log';
  if (manifest.audit.audit_event_ids.join() !== events.map(({ body }) => String(body['event_id'])).join())
    return 'event ids';
  const states = statesOf(entries);
  const records = linesIn(files['data/runs.jsonl']).map(
    (line) => JSON.parse(line) as { run_id: string; status: string },
  );
  if (
    [...own].sort().join() !==
    records
      .map(({ run_id }) => run_id)
      .sort()
      .join()
  )
    return 'runs that are not in the log';
  for (const { run_id, status } of records) {
    const state = states.get(run_id) ?? '';
    if (state !== status) return `run ${run_id} is ${state} and recorded as ${status}`;
  }
  const log = texts.join('\n');
  for (const path of Object.keys(files)) {
    const hash = /^data\/(?:artifacts\/|machines\/|policies\/(?:lanes|roles|actions)-)([0-9a-f]{64})/.exec(path)?.[1];
    if (hash === undefined) continue;
    if (hashOf(files[path]!) !== hash) return `content of ${path}`;
    if (!log.includes(`"${hash}"`)) return `no entry names ${path}`;
  }
  const unnamed = manifest.contents.artifacts.find(({ hash_sha256 }) => !log.includes(`"${hash_sha256}"`));
  return unnamed === undefined ? null : 'an artifact that no entry names';
}

/** An archive by its directory. @throws for what this reader does not support */
export function byDirectory(zip: Buffer): Map<string, Buffer> {
  const end = zip.lastIndexOf('PK\u0005\u0006');
  const found = new Map<string, Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let n = zip.readUInt16LE(end + 10); n > 0; n -= 1) {
    const [name, extra, comment] = [28, 30, 32].map((field) => zip.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ];
    const path = zip.toString('utf8', at + 46, at + 46 + name);
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const data = zip.subarray(start, start + zip.readUInt32LE(at + 20));
    if (found.has(path)) throw new Error(`twice: ${path}`);
    found.set(path, zip.readUInt16LE(at + 10) === 8 ? inflateRawSync(data, { maxOutputLength: 1 << 26 }) : data);
    at += 46 + name + extra + comment;
  }
  return found;
}

/** The same archive by the headers before the data, from its first byte on. @throws if they end before the directory */
export function byHeaders(zip: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  let at = 0;
  while (zip.readUInt32LE(at) === 0x04034b50) {
    const [name, extra, size] = [zip.readUInt16LE(at + 26), zip.readUInt16LE(at + 28), zip.readUInt32LE(at + 18)];
    const path = zip.toString('utf8', at + 30, at + 30 + name);
    const start = at + 30 + name + extra;
    const data = zip.subarray(start, start + size);
    if (found.has(path)) throw new Error(`twice: ${path}`);
    found.set(path, zip.readUInt16LE(at + 8) === 8 ? inflateRawSync(data, { maxOutputLength: 1 << 26 }) : data);
    at = start + size;
  }
  if (zip.readUInt32LE(at) !== 0x02014b50) throw new Error(`neither a header nor the directory at ${at}`);
  return found;
}

/**
 * The files of an archive below its single folder; null if two readers would find different ones, or one finds none.
 */
export function archiveFiles(zip: Buffer): Files | null {
  try {
    const [one, other] = [byDirectory(zip), byHeaders(zip)];
    if ([...one.keys()].sort().join('\n') !== [...other.keys()].sort().join('\n')) return null;
    for (const [path, content] of one) if (!other.get(path)?.equals(content)) return null;
    const files = [...one].filter(([path]) => !path.endsWith('/'));
    return Object.fromEntries(files.map(([path, content]) => [path.slice(path.indexOf('/') + 1), content]));
  } catch {
    return null;
  }
}
