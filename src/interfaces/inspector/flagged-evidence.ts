// Opens a file that is not a complete evidence bundle of its ledger, so that a person can look at what is left of it.
// Nothing that it returns is verified. Verification, replay and every other use open bundles with `openEvidence`.
//
// The hash that the ledger recorded for an entry is still known if its tree goes on: the next entry names it. So a
// changed entry has two hashes, and a reader who finds the recorded one under the signed root knows that all the other
// entries are as they were.

import { readJson } from '../../core/contract/json.js';
import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import {
  EvidenceEntry,
  EvidenceHeader,
  HEADER_BYTES_MAX,
  refuseOtherEvidence,
  SignedStatement,
  STATEMENT_BYTES_MAX,
  UNTRUSTED_LINE_BYTES_MAX,
} from '../../core/contract/evidence/evidence.js';
import { isConforming } from '../../core/contract/validators.js';
import { LedgerError } from '../../core/errors.js';
import { EMPTY_HEAD, isHead, leafHash, rootOf } from '../../core/ledger/proof/merkle.js';
import type { EntryPlace, LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { LineFile, LinePlace } from '../../engine/ports/ledger/line-file.js';

/** What is shown of a bundle. Nothing of it is verified if something is wrong with the bundle. */
export interface FileEvidence {
  /** The key and the signed note of its header. */
  readonly key: string;
  readonly note: string;
  readonly begin: LogHead;
  /** The number of entries, including those before the first one of the file. */
  readonly size: number;
  /** The entries as the file has them. Of a changed entry, the hash is the recorded one where that is known. */
  readonly log: (from?: number) => AsyncIterable<StoredEntry>;
  readonly tree: (tree_id: string, fromSeq?: number) => AsyncIterable<StoredEntry>;
  readonly trees: () => readonly { readonly tree_id: string; readonly log_index: number }[];
  readonly artifactsOf: (place: EntryPlace) => Promise<readonly StoredArtifact[]>;
}

/** What is stored of each line: where it is, and what its text says. */
interface FlaggedLine {
  readonly place: LinePlace;
  readonly tree_id: string;
  readonly seq: number;
  readonly prev: string | null;
  readonly hash: string;
}

/**
 * @throws LedgerError LEDGER_TAMPERED if not even the header is one of a bundle: then it is another file;
 * LEDGER_UNSUPPORTED for a bundle of another format
 */
export async function openFlaggedEvidence(file: LineFile): Promise<FileEvidence> {
  const ends = await file.boundaryLines({ firstMax: HEADER_BYTES_MAX, lastMax: STATEMENT_BYTES_MAX });
  const header = ends === null ? undefined : readJson(ends.first);
  refuseOtherEvidence(header);
  if (!isConforming(EvidenceHeader, header)) throw notBundleError();
  const { key, checkpoint: note, from } = header as EvidenceHeader;
  const begin = beginOf(from);
  const lines = await readLines(file);
  const hashes = recordedHashes(lines);
  const trees = indexByTree(lines);
  const entryAt = async (at: number): Promise<StoredEntry> => {
    const line = lines[at];
    const { text, type } = readEntry(line === undefined ? Buffer.alloc(0) : await file.read(line.place));
    const { tree_id = '', seq = 0 } = line ?? {};
    return { log_index: begin.size + at, tree_id, seq, type, text, leaf_hash: hashes[at] ?? leafHash(text) };
  };
  return {
    key,
    note,
    begin,
    size: begin.size + lines.length,
    log: async function* (start = begin.size) {
      for (let at = Math.max(0, start - begin.size); at < lines.length; at += 1) yield await entryAt(at);
    },
    tree: async function* (tree_id, fromSeq = 0) {
      for (const at of trees.get(tree_id) ?? []) if ((lines[at]?.seq ?? 0) >= fromSeq) yield await entryAt(at);
    },
    trees: () =>
      [...trees].flatMap(([tree_id, [first = 0]]) =>
        tree_id === '' ? [] : [{ tree_id, log_index: begin.size + first }],
      ),
    artifactsOf: async ({ tree_id, seq, log_index }) => {
      const named = log_index == null ? undefined : log_index - begin.size;
      const at = named ?? (trees.get(tree_id) ?? []).find((place) => lines[place]?.seq === seq);
      const line = at === undefined ? undefined : lines[at];
      return line === undefined ? [] : readEntry(await file.read(line.place)).artifacts;
    },
  };
}

/** The lines between the header and the statement; also those that are not entries. */
async function readLines(file: LineFile): Promise<readonly FlaggedLine[]> {
  const lines: FlaggedLine[] = [];
  let isHeader = true;
  let last: { readonly bytes: Uint8Array; readonly place: LinePlace } | null = null;
  const add = ({ bytes, place }: NonNullable<typeof last>): void => {
    const { text } = readEntry(bytes);
    const { tree_id, seq, prev } = (readJson(text) ?? {}) as Partial<Record<string, unknown>>;
    lines.push({
      place,
      tree_id: typeof tree_id === 'string' ? tree_id : '',
      seq: typeof seq === 'number' ? seq : 0,
      prev: typeof prev === 'string' && /^[0-9a-f]{64}$/.test(prev) ? prev : null,
      hash: leafHash(text),
    });
  };
  for await (const next of file.lines(UNTRUSTED_LINE_BYTES_MAX)) {
    if (last !== null && !isHeader) add(last);
    if (last !== null) isHeader = false;
    last = next;
  }
  // The end may be missing: then the last line is an entry.
  if (last !== null && !isHeader && !isConforming(SignedStatement, readJson(last.bytes))) add(last);
  return lines;
}

/**
 * The recorded hash of each entry: the one that the next entry of its tree names, unless that entry was changed itself.
 * Without such an entry it is the hash of the text.
 */
export function recordedHashes(lines: readonly Pick<FlaggedLine, 'tree_id' | 'seq' | 'prev' | 'hash'>[]): string[] {
  const hashes = lines.map(({ hash }) => hash);
  const next = new Map<string, number>();
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at];
    if (line === undefined) continue;
    const after = next.get(line.tree_id);
    const follower = after === undefined ? undefined : lines[after];
    next.set(line.tree_id, at);
    if (after === undefined || follower?.prev == null || follower.seq !== line.seq + 1) continue;
    if (hashes[after] === follower.hash) hashes[at] = follower.prev;
  }
  return hashes;
}

/** The positions of the lines of each tree. All lines of a file may be of one tree, or of none: it is not trusted. */
export function indexByTree(lines: readonly Pick<FlaggedLine, 'tree_id'>[]): ReadonlyMap<string, readonly number[]> {
  const trees = new Map<string, number[]>();
  for (const [at, { tree_id }] of lines.entries()) {
    const places = trees.get(tree_id);
    if (places === undefined) trees.set(tree_id, [at]);
    else places.push(at);
  }
  return trees;
}

/** The entry of a line; the line itself where it is not one. */
function readEntry(bytes: Uint8Array): {
  readonly text: string;
  readonly type: StoredEntry['type'];
  readonly artifacts: readonly StoredArtifact[];
} {
  const value = readJson(bytes);
  const line = isConforming(EvidenceEntry, value) ? (value as EvidenceEntry) : null;
  const text = line?.entry ?? Buffer.from(bytes).toString('utf8');
  const { type } = (readJson(text) ?? {}) as { readonly type?: unknown };
  return {
    text,
    type: typeof type === 'string' ? type : 'input',
    artifacts: (line?.artifacts ?? []).map((artifact) =>
      'withheld' in artifact
        ? artifact
        : { kind: artifact.kind, case_id: artifact.case_id, bytes: Buffer.from(artifact.content, 'base64') },
    ),
  };
}

function beginOf(from: EvidenceHeader['from']): LogHead {
  if (from === undefined) return EMPTY_HEAD;
  const begin = { size: from.size, frontier: from.frontier, root: rootOf(from.frontier) };
  return isHead(begin) ? begin : EMPTY_HEAD;
}

const notBundleError = (): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: 'the file is not an evidence bundle: name one that `ledger export` wrote',
  });
