// Opens an evidence bundle as a ledger that can be read, verified and replayed. Nothing in it is trusted. This file
// reports what is wrong with the bundle; verification and replay report what is wrong with the ledger in it.
//
//   E1. The first and the last line are parsed first, with bounds. The key must have signed the checkpoint and the
//       statement, and the bytes before the statement must have the hash that it names. Only then are other lines
//       parsed.
//   E2. The number of entries and their root must match the checkpoint, so a bundle without its last entries is
//       rejected.
//   E3. Content may be withheld only for a reason that can be checked (`WithholdingCheck`).

import { nameInLedger } from '../../core/contract/entry-name.js';
import { createHash } from 'node:crypto';
import { readJson, canonicalJson } from '../../core/contract/json.js';
import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import {
  EvidenceEntry,
  EvidenceHeader,
  EvidenceStatement,
  HEADER_BYTES_MAX,
  refuseOtherEvidence,
  SignedStatement,
  STATEMENT_BYTES_MAX,
  UNTRUSTED_LINE_BYTES_MAX,
} from '../../core/contract/evidence/evidence.js';
import { isConforming } from '../../core/contract/validators.js';
import { LedgerError } from '../../core/errors.js';
import { openSignedHead, type Checkpoint } from '../../core/ledger/proof/checkpoint.js';
import { openStatement } from '../../core/ledger/proof/dsse.js';
import { EMPTY_HEAD, extendHead, isHead, leafHash, rootOf } from '../../core/ledger/proof/merkle.js';
import { followKeys } from '../../core/ledger/proof/key-history.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import type { LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
import { verifyLedger } from '../../core/ledger/verification/verify-ledger.js';
import type { EntryPlace, LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { LineFile, LinePlace } from '../../engine/ports/ledger/line-file.js';
import { loadFeaturesOf } from '../../kernel/fold.js';
import { ReplayCheck } from '../../kernel/replay/check-replay.js';
import { parseStoredEntry, isRunEntry } from './stored-entry.js';
import type { EvidenceBundle } from './evidence-bundle.js';
import { WithholdingCheck } from '../content/lane-withholding.js';
import { EvidenceSummary } from './evidence-summary.js';

/**
 * Authenticates a bundle, reads it once, and compares its lines with the signed statement about them. Memory: a few
 * numbers per entry.
 * @param trusted the key that must have signed; null uses the bundle's own, which proves only its integrity
 * @throws LedgerError LEDGER_TAMPERED for anything but a complete bundle of that key; LEDGER_UNSUPPORTED for one whose
 * format this version does not know
 */
export async function openEvidence(file: LineFile, trusted: NoteVerifier | null): Promise<EvidenceBundle> {
  const { key, checkpoint, statementText, hasWithheldContent } = await authenticate(file, trusted);
  const read = await indexLines(file, { hasWithheldContent, isTrusted: trusted !== null });
  if (statementText !== canonicalJson(read.summary.statement(key.name, checkpoint.root, read.content_sha256))) {
    throw invalidBundleError('its statement is not about these lines');
  }
  const { places, trees, begin, head } = read;
  if (head.size !== checkpoint.size || head.root !== checkpoint.root) {
    throw invalidBundleError(
      `its entries end at ${head.size} or differ from those of its checkpoint, which covers ${checkpoint.size}`,
    );
  }
  // Cached, because readers of an entry usually need its content next.
  let last: EvidenceLine | null = null;
  const lineAt = async (log_index: number): Promise<EvidenceLine> => {
    if (last?.entry.log_index === log_index) return last;
    const place = places[log_index - begin.size];
    if (log_index < begin.size) throw archivedEntryError(log_index, begin.size);
    const line = parseEntry(place === undefined ? Buffer.alloc(0) : await file.read(place), log_index);
    return (last = { line, entry: toStoredEntry(line, log_index) });
  };
  const lineOf = async ({ tree_id, seq, log_index = null }: EntryPlace): Promise<EvidenceLine | null> => {
    const named = log_index === null ? null : await lineAt(log_index);
    if (named?.entry.tree_id === tree_id && named.entry.seq === seq) return named;
    const own = trees.get(tree_id)?.[seq];
    return own === undefined ? null : lineAt(own);
  };
  return {
    key,
    checkpoint,
    keys: read.header.chain ?? [],
    note: read.header.checkpoint,
    begin,
    log: async function* (from = begin.size) {
      for (let index = from; index < head.size; index += 1) yield (await lineAt(index)).entry;
    },
    tree: async function* (tree_id, fromSeq = 0) {
      for (const index of (trees.get(tree_id) ?? []).slice(fromSeq)) yield (await lineAt(index)).entry;
    },
    hasTree: (tree_id) => trees.has(tree_id),
    trees: () => [...trees].map(([tree_id, [first = 0]]) => ({ tree_id, log_index: first })),
    artifactsOf: async (place) => (await lineOf(place))?.line.artifacts.map(toArtifact) ?? [],
    head: () => Promise.resolve(head),
    size: () => Promise.resolve(checkpoint.size),
  };
}

interface AuthenticatedBundle {
  readonly key: NoteVerifier;
  readonly checkpoint: Checkpoint;
  /** The payload of the statement. */
  readonly statementText: string;
  /** Whether any content is withheld, according to the statement. */
  readonly hasWithheldContent: boolean;
}

/** E1. @throws LedgerError LEDGER_TAMPERED; UsageError for lines that are too long */
async function authenticate(file: LineFile, trusted: NoteVerifier | null): Promise<AuthenticatedBundle> {
  const ends = await file.boundaryLines({ firstMax: HEADER_BYTES_MAX, lastMax: STATEMENT_BYTES_MAX });
  if (ends === null) throw invalidBundleError('the file is not an evidence bundle');
  const header = parseHeader(ends.first);
  const key = followKeys(trusted, header);
  if (typeof key === 'string') throw invalidBundleError(key);
  const signed = openSignedHead(Buffer.from(header.checkpoint), key);
  if (typeof signed === 'string') throw invalidBundleError(`its checkpoint ${signed}`);
  const { checkpoint } = signed;
  // The same key, so that a retired one cannot sign a new statement about the checkpoint of another.
  const statementText = openStatement(parseStatement(ends.last), signed.key);
  if (statementText === null) throw invalidBundleError('its statement is not signed by this key');
  const statement = readJson(statementText);
  if (!isStatement(statement)) throw invalidBundleError('its statement is not about a ledger');
  const { subject, predicate } = statement;
  const { size } = beginOf(header);
  if (subject[0]?.digest.sha256 !== checkpoint.root || predicate.entries !== checkpoint.size - size) {
    throw invalidBundleError('its statement is about another checkpoint');
  }
  if ((await file.sha256Before(ends.lastOffset)) !== predicate.content_sha256) {
    throw invalidBundleError('its statement is not about these lines');
  }
  return { key: signed.key, checkpoint, statementText, hasWithheldContent: predicate.withheld > 0 };
}

const isStatement = (value: unknown): value is EvidenceStatement => isConforming(EvidenceStatement, value);

/** A line and its entry. */
interface EvidenceLine {
  readonly line: EvidenceEntry;
  readonly entry: StoredEntry;
}

interface EvidenceIndex {
  readonly header: EvidenceHeader;
  readonly places: readonly LinePlace[];
  /** The log indexes of the entries of each tree. */
  readonly trees: ReadonlyMap<string, readonly number[]>;
  readonly begin: LogHead;
  readonly head: LogHead;
  readonly summary: EvidenceSummary;
  readonly content_sha256: string;
}

interface IndexOptions {
  /** Without withheld content no reasons are checked: the number of withheld contents is compared at the end. */
  readonly hasWithheldContent: boolean;
  readonly isTrusted: boolean;
}

async function indexLines(file: LineFile, { hasWithheldContent, isTrusted }: IndexOptions): Promise<EvidenceIndex> {
  const content = createHash('sha256');
  const summary = new EvidenceSummary();
  const withheld = hasWithheldContent ? new WithholdingCheck() : null;
  const places: LinePlace[] = [];
  const trees = new Map<string, number[]>();
  let header: EvidenceHeader | null = null;
  let begin = EMPTY_HEAD;
  let head = EMPTY_HEAD;
  // The last line is the statement, and only the end of the file shows which line is the last.
  let last: { readonly bytes: Uint8Array; readonly place: LinePlace } | null = null;
  for await (const next of file.lines(isTrusted ? undefined : UNTRUSTED_LINE_BYTES_MAX)) {
    if (last !== null) {
      content.update(last.bytes).update('\n');
      if (header === null) {
        header = parseHeader(last.bytes);
        head = begin = beginOf(header);
      } else {
        const line = parseEntry(last.bytes, head.size);
        const stored = toStoredEntry(line, head.size);
        places.push(last.place);
        const own = trees.get(stored.tree_id) ?? [];
        if (own.push(stored.log_index) === 1) trees.set(stored.tree_id, own);
        const artifacts = line.artifacts.map(toArtifact);
        if (withheld !== null) await loadFeaturesOf(stored, artifacts);
        const isNeeded = isRunEntry(stored) || (withheld !== null && stored.type === 'input');
        const entry = isNeeded ? parseStoredEntry(stored) : null;
        const problem = withheld?.problemOf(entry, artifacts) ?? null;
        if (problem !== null) throw invalidBundleError(`entry ${nameInLedger(head.size)}: ${problem}`);
        summary.add(isRunEntry(stored) ? entry : null, artifacts);
        head = extendHead(head, [stored.leaf_hash]);
      }
    }
    last = next;
  }
  if (header === null || last === null) throw invalidBundleError('the file is not an evidence bundle');
  return { header, places, trees, begin, head, summary, content_sha256: content.digest('hex') };
}

function parseHeader(bytes: Uint8Array): EvidenceHeader {
  const value = readJson(bytes);
  if (isConforming(EvidenceHeader, value)) return value as EvidenceHeader;
  refuseOtherEvidence(value);
  throw invalidBundleError('its first line is not the header of one');
}

/** Where the entries begin, according to the header. The root of the checkpoint proves it later. */
function beginOf({ from }: EvidenceHeader): LogHead {
  if (from === undefined) return EMPTY_HEAD;
  const { size, frontier } = from;
  const begin = { size, frontier, root: rootOf(frontier) };
  if (isHead(begin)) return begin;
  throw invalidBundleError('its header does not say where its entries begin');
}

function parseEntry(bytes: Uint8Array, log_index: number): EvidenceEntry {
  const value = readJson(bytes);
  if (isConforming(EvidenceEntry, value)) return value as EvidenceEntry;
  throw invalidBundleError(`entry ${nameInLedger(log_index)} is malformed`);
}

function parseStatement(bytes: Uint8Array): SignedStatement {
  const value = readJson(bytes);
  if (isConforming(SignedStatement, value)) return value as SignedStatement;
  throw invalidBundleError('it does not end with a signed statement: the end may be missing');
}

/** The entry in the form of a store, with all members taken from its text. */
function toStoredEntry({ entry: text }: EvidenceEntry, log_index: number): StoredEntry {
  const value = readJson(text);
  const { tree_id, seq, type } = (typeof value === 'object' && value !== null ? value : {}) as Partial<StoredEntry>;
  if (typeof tree_id !== 'string' || typeof seq !== 'number' || typeof type !== 'string') {
    throw invalidBundleError(`entry ${nameInLedger(log_index)} is malformed`);
  }
  return { log_index, tree_id, seq, type, text, leaf_hash: leafHash(text) };
}

const toArtifact = (line: EvidenceEntry['artifacts'][number]): StoredArtifact =>
  'withheld' in line ? line : { kind: line.kind, case_id: line.case_id, bytes: Buffer.from(line.content, 'base64') };

const archivedEntryError = (log_index: number, begin: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_ARCHIVED',
    message: `entry ${nameInLedger(log_index)} is not in this bundle: it begins at ${nameInLedger(begin)}`,
  });

const invalidBundleError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_TAMPERED', message: `this is not a complete evidence bundle of its ledger: ${why}` });

/** Verifies a bundle like `LedgerReader.verify`, except for marks and written records, which are not in the log. */
export const verifyEvidence = (
  evidence: EvidenceBundle,
  { replay: shouldReplay = true }: { readonly replay?: boolean } = {},
): Promise<LedgerVerdict> =>
  verifyLedger({
    log: evidence.log,
    artifactsOf: evidence.artifactsOf,
    head: evidence.head,
    begin: evidence.begin,
    externalHead: evidence.checkpoint,
    keys: () => ({ notes: evidence.keys, isUnfinished: false }),
    ...(shouldReplay ? { replay: new ReplayCheck(evidence) } : {}),
  });
