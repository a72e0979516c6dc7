// A ledger as the inspector reads it, from a home directory or a bundle. All inspector responses are built from this.

import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { openLineFile } from '../../system/files/open-line-file.js';
import { systemPace } from '../../system/system-pace.js';
import { artifactRef, isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { ArtifactInfo, LedgerInfo } from '../../core/contract/inspection/inspection.js';
import { LedgerError } from '../../core/errors.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import type {
  CursorOptions,
  EntryPlace,
  LogHead,
  StoredEntry,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { Pace } from '../../engine/ports/pace.js';
import type { LineFile } from '../../engine/ports/ledger/line-file.js';
import type { ProgressReporter } from '../../engine/ports/progress.js';
import { openFlaggedEvidence, type FileEvidence } from './flagged-evidence.js';
import { openEvidence } from '../../runtime/ledger/open-evidence.js';
import { OBSERVERS } from '../../runtime/content/audience.js';
import { ContentReader } from '../../runtime/content/content-reader.js';
import type { HomePaths, KeyFolder } from '../../home/home-paths.js';
import { readLedgerVerifier } from '../../home/ledger-key.js';
import { countLines } from '../../runtime/ledger/count-reads.js';
import type { LedgerReader } from '../../runtime/ledger/ledger-reader.js';

export interface LedgerView {
  log(from?: number, options?: CursorOptions): AsyncIterable<StoredEntry>;
  tree(tree_id: string, fromSeq?: number): AsyncIterable<StoredEntry>;
  /** All artifacts of the entry, for folding. */
  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]>;
  /** The artifacts of the entry, without content that must not be shown. */
  shownOf(entry: StoredEntry): Promise<readonly StoredArtifact[]>;
  /** The trees in the order of their first entries. */
  trees(): AsyncIterable<{ readonly tree_id: string; readonly log_index: number }>;
  size(): Promise<number>;
  info(): Promise<LedgerInfo>;
  /** Whether the entries stay as they are, so that they can be replayed once. */
  readonly isFinal: boolean;
  /** How long work yields. */
  readonly pace: Pace;
  close(): Promise<void>;
}

/** The key that verifies a ledger, and its home directory if it has one. */
export type LedgerPlace = Pick<KeyFolder, 'ledgerKey'> & Partial<Pick<HomePaths, 'home'>>;

/** The view of an open ledger. The caller closes the ledger. */
export function createHomeView(ledger: LedgerReader, place: LedgerPlace | null, approvals: boolean): LedgerView {
  const verifier = place === null ? null : readLedgerVerifier(place.ledgerKey);
  const key = verifier?.vkey ?? null;
  const title = place?.home === undefined ? (verifier?.name ?? 'in memory') : basename(place.home);
  return {
    pace: ledger.pace,
    isFinal: false,
    log: (from, options) => ledger.log(from, options),
    tree: (tree_id, fromSeq) => ledger.tree(tree_id, fromSeq),
    artifactsOf: (place) => ledger.folded.artifactsOf(place),
    shownOf: (entry) => ledger.artifactsOf(entry),
    trees: () => listIntegratedTrees(ledger.summaries()),
    size: async () => (await ledger.head()).size,
    info: async () => {
      const begin = await ledger.begin();
      const { size } = await ledger.head();
      const checkpoint = await readSignedNote(ledger);
      return createLedgerInfo({ key, checkpoint, begin, size, live: true, approvals, title }, ledger.log(begin.size));
    },
    close: () => Promise.resolve(),
  };
}

/** Reads the signed checkpoint; null for an invalid head file, whose problem `ledger verify` reports. */
async function readSignedNote(ledger: LedgerReader): Promise<string | null> {
  try {
    return (await ledger.anchored())?.note ?? null;
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return null;
    throw error;
  }
}

/**
 * The view of a bundle in a file.
 * @param trusted the key that must have signed; null accepts the bundle's own key, which proves only internal
 * consistency
 * @throws LedgerError LEDGER_TAMPERED for an incomplete or changed bundle; UsageError if the file does not exist
 */
export const openBundleView = (
  path: string,
  trusted: NoteVerifier | null,
  progress: ProgressReporter,
): Promise<LedgerView> =>
  openFileView(path, null, async (file) => {
    const counted = countLines(file, progress, 'reading the bundle', statSync(path).size);
    const bundle = await openEvidence(counted, trusted);
    return { ...bundle, key: bundle.key.vkey, size: await bundle.size() };
  });

/**
 * The view of a file that is not a complete bundle, for a person who looks at what is left of it.
 * @param flaw why the file is not one
 * @throws LedgerError LEDGER_TAMPERED for a file of another kind
 */
export const openFlaggedView = (path: string, flaw: string): Promise<LedgerView> =>
  openFileView(path, flaw, openFlaggedEvidence);

async function openFileView(
  path: string,
  flaw: string | null,
  open: (file: LineFile) => Promise<FileEvidence>,
): Promise<LedgerView> {
  const file = await openLineFile(path);
  try {
    const evidence = await open(file);
    const { begin, size, key, note: checkpoint, log, tree, artifactsOf } = evidence;
    const facts = { key, checkpoint, begin, size, live: false, approvals: false, title: basename(path) };
    const flawed = flaw === null ? facts : { ...facts, flaw };
    const content = new ContentReader(evidence);
    return {
      pace: systemPace(),
      isFinal: flaw === null,
      log: (from) => log(from),
      tree,
      artifactsOf,
      // An archive file has this format too, and contains all content. Whether a lane withholds content cannot be read
      // from changed entries: then nothing is shown.
      shownOf: (entry) => {
        const shown = content.read(entry, OBSERVERS);
        return flaw === null ? shown : shown.catch(() => []);
      },
      // eslint-disable-next-line @typescript-eslint/require-await
      trees: async function* () {
        yield* evidence.trees();
      },
      size: () => Promise.resolve(size),
      info: () => createLedgerInfo(flawed, log(begin.size)),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The trees without those that are not in the log yet. */
async function* listIntegratedTrees(
  trees: AsyncIterable<TreeSummary>,
): AsyncGenerator<{ readonly tree_id: string; readonly log_index: number }> {
  for await (const { tree_id, log_index } of trees) if (log_index !== null) yield { tree_id, log_index };
}

type LedgerFacts = Omit<LedgerInfo, 'ledger_id' | 'begin' | 'frontier'> & { readonly begin: LogHead };

async function createLedgerInfo(
  { begin, ...facts }: LedgerFacts,
  log: AsyncIterable<StoredEntry>,
): Promise<LedgerInfo> {
  let first = '';
  for await (const { leaf_hash } of log) {
    first = leaf_hash;
    break;
  }
  const ledger_id = sha256(facts.key === null ? first : `${facts.key}\n${first}`);
  return { ledger_id, begin: begin.size, frontier: begin.frontier, ...facts };
}

/** The properties of an artifact that every reader may see. */
export function toArtifactInfo(artifact: StoredArtifact): ArtifactInfo {
  const { hash_sha256, byte_size = 0 } = artifactRef(artifact);
  const { kind, case_id } = artifact;
  return { sha256: hash_sha256, kind, case_id, byte_size, withheld: isWithheld(artifact) ? artifact.withheld : null };
}
