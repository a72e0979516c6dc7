// Creates the payload of a bag in the order in which it is written. Only the current file is in memory.

import { nameInTree, nameInLedger } from '../../core/contract/entry-name.js';
import { byPath, type PayloadFile } from './bagit/write-bag.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { sha256 } from '../../core/contract/hash.js';
import { RunRecord } from '../../core/contract/run/run-record.js';
import { isConforming } from '../../core/contract/validators.js';
import { BagError, LedgerError, InvariantError } from '../../core/errors.js';
import { type NoteSigner, signNote } from '../../core/ledger/proof/signed-note.js';
import { requireContent } from '../../core/ledger/require-content.js';
import { RunRecords } from '../../runtime/ledger/run-records.js';
import type { Audience } from '../../runtime/content/audience.js';
import type { ContentReader } from '../../runtime/content/content-reader.js';
import type { ExportBagContents, BagContentFile } from './bag-contents.js';
import { EXPORT_BAG_LIMITS, AUDIT, encodeLines, MANIFEST, RUNS, LOG, PROOF } from './bag-format.js';
import { manifestPieces } from './bag-manifest.js';
import { createHash } from 'node:crypto';
import {
  BAG_PROOF_FORMAT,
  type BagDigest,
  type BagEntry,
  type BagProof,
} from '../../core/contract/evidence/bag-proof.js';
import { entryTypes } from '../../core/contract/run/entry.js';
import { checkpointText } from '../../core/ledger/proof/checkpoint.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';

/** Signs the proof of a bag; null if the ledger has no key. */
export type BagSigner = NoteSigner | null;

interface PayloadParts {
  readonly contents: ExportBagContents;
  readonly manifest: ExportBundle;
  readonly signer: BagSigner;
}

/** Where content is read, and for which audience. */
export interface PayloadSource {
  readonly content: ContentReader;
  readonly audience: Audience;
}

/** Every file. Its content is read when the file is written. @throws LedgerError LEDGER_TAMPERED while iterating */
export async function* createPayload(
  source: PayloadSource,
  { contents, manifest, signer }: PayloadParts,
): AsyncGenerator<PayloadFile> {
  const generated: readonly PayloadFile[] = [
    ...(signer === null ? [] : bagLogFiles(contents, manifest, signer)),
    { path: AUDIT, content: encodeLines(eventLines(contents)) },
    { path: MANIFEST, content: manifestPieces(manifest) },
    { path: RUNS, content: encodeLines(recordLines(contents)) },
  ];
  for (const file of [...generated, ...contents.files].sort(byPath)) {
    yield 'content' in file ? file : { path: file.path, content: await readBagContent(source, file) };
  }
}

/** Content of the store is hashed again: the store is not trusted. */
async function readBagContent(
  { content, audience }: PayloadSource,
  { ref, place }: BagContentFile,
): Promise<Uint8Array> {
  const artifacts = requireContent(await content.read(place, audience));
  const found = artifacts.find(
    ({ kind, case_id, bytes }) =>
      kind === ref.artifact_kind && case_id === (ref.case_id ?? null) && sha256(bytes) === ref.hash_sha256,
  );
  if (found !== undefined) return found.bytes;
  throw new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `the content ${ref.hash_sha256} of entry ${nameInTree(place.tree_id, place.seq)} is missing or was changed`,
  });
}

type RunEntries = Pick<ExportBagContents, 'history' | 'runs'>;

export async function* eventLines({ history, runs }: RunEntries): AsyncGenerator<readonly string[]> {
  for await (const entries of history.entries(['audit_event'])) {
    yield entries.flatMap(({ entry: { type, body } }) =>
      type === 'audit_event' && runs.has(body.run_id) ? [canonicalJson(body)] : [],
    );
  }
}

/** Yields each record as soon as its last event was read. Only records with further events stay in memory. */
export async function* recordLines({ history, runs }: RunEntries): AsyncGenerator<readonly string[]> {
  const pending = new Map<string, PendingRecord>();
  for await (const entries of history.entries(['run_created', 'audit_event'])) {
    yield entries.flatMap(({ entry }) => {
      if (entry.type !== 'run_created' && entry.type !== 'audit_event') return [];
      const { run_id } = entry.body;
      const events = runs.get(run_id);
      if (events === undefined) return [];
      if (entry.type === 'run_created') pending.set(run_id, { records: new RunRecords(), left: events + 1 });
      const run = pending.get(run_id);
      if (run === undefined) return [];
      run.records.fold(entry);
      run.left -= 1;
      if (run.left > 0) return [];
      pending.delete(run_id);
      return run.records.all().map(lineOf);
    });
  }
}

interface PendingRecord {
  readonly records: RunRecords;
  /** The number of entries still to come. */
  left: number;
}

function lineOf(record: RunRecord): string {
  const line = canonicalJson(record);
  if (isConforming(RunRecord, record) && line.length <= EXPORT_BAG_LIMITS.line_characters_max) return line;
  throw new BagError({ code: 'BAG_UNWRITABLE', message: `the record of ${record.run_id} does not fit into a bundle` });
}

// The log of a bag: every entry of the case's trees, and the proof that they are in the log of the ledger. The proof is
// signed together with the manifest, so without the key no entry can be omitted or replaced.

/** The two files in the order in which they must be written: the second contains the hash of the first. */
export function bagLogFiles(
  contents: ExportBagContents,
  manifest: ExportBundle,
  signer: NoteSigner,
): readonly PayloadFile[] {
  const hash = createHash('sha256');
  let entries_sha256: string | null = null;
  const entries = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of encodeLines(entryLines(contents))) {
      hash.update(piece);
      yield piece;
    }
    entries_sha256 = hash.digest('hex');
  };
  const proof = function* (): Generator<Uint8Array> {
    if (entries_sha256 === null) throw new InvariantError('the proof of a bag is written behind its entries');
    const manifest_hash_sha256 = manifest.integrity?.manifest_hash_sha256 ?? '';
    yield Buffer.from(proofText(contents, { entries_sha256, manifest_hash_sha256 }, signer));
  };
  return [
    { path: LOG, content: entries() },
    { path: PROOF, content: proof() },
  ];
}

/** The line of the checkpoint that names the bag. */
export const digestLine = (digest: BagDigest): string => `bag sha256:${sha256(canonicalJson(digest))}`;

function proofText({ history, proof }: ExportBagContents, digest: BagDigest, signer: NoteSigner): string {
  const { size, root } = history.slice.head;
  const text = `${checkpointText({ origin: signer.name, size, root })}${digestLine(digest)}\n`;
  const content: BagProof = {
    format: BAG_PROOF_FORMAT,
    key: signer.vkey,
    ...keyNotesOf(signer),
    checkpoint: signNote(text, signer),
    hashes: [...(proof ?? [])],
  };
  const written = canonicalJson(content);
  if (written.length <= EXPORT_BAG_LIMITS.proof_bytes_max) return written;
  throw new BagError({ code: 'BAG_UNWRITABLE', message: 'the proof of the case exceeds the limit of a bag' });
}

async function* entryLines({ history }: ExportBagContents): AsyncGenerator<readonly string[]> {
  for await (const entries of history.entries(entryTypes())) {
    yield entries.map(({ text, log_index }) => {
      const line = canonicalJson({ entry: text, index: log_index } satisfies BagEntry);
      if (line.length <= EXPORT_BAG_LIMITS.line_characters_max) return line;
      throw new BagError({
        code: 'BAG_UNWRITABLE',
        message: `entry ${nameInLedger(log_index)} does not fit into a bag`,
      });
    });
  }
}
