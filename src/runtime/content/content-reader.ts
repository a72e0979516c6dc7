// The only way in which content leaves the ledger (decision 0035): code that shows, sends or writes content reads it
// here, for an audience. `test/content-access.test.ts` lists the code that may read the store itself, because it
// decides, folds, verifies or erases, and passes no content on.

import { systemPace } from '../../system/system-pace.js';
import { artifactRef, isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import type { EntryPlace, LedgerStore, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace } from '../../engine/ports/pace.js';
import { readWithholding, omitContent } from './lane-withholding.js';
import { grantOf, type Audience, type ContentGrant } from './audience.js';

/** Milliseconds that a pass over a tree works before other work runs. */
const TURN_MS = 5;

/**
 * Reads the content of an entry. Content that was erased, or that the audience may not read, is replaced by its hash
 * and size.
 */
export class ContentReader {
  readonly #source: Pick<LedgerStore, 'tree' | 'artifactsOf'>;
  readonly #pace: Pace;

  constructor(source: Pick<LedgerStore, 'tree' | 'artifactsOf'>, pace: Pace = systemPace()) {
    this.#source = source;
    this.#pace = pace;
  }

  /**
   * @throws LedgerError LEDGER_ARCHIVED, LEDGER_TAMPERED
   * @throws InvariantError for an audience that no decision created
   */
  async read(place: EntryPlace, audience: Audience): Promise<readonly StoredArtifact[]> {
    const grant = grantOf(audience);
    if (grant.kind === 'observers') return this.#readVisible(place);
    const artifacts = await this.#source.artifactsOf(place);
    return artifacts.map((artifact) => (isGranted(grant, place, artifact) ? artifact : omitContent(artifact)));
  }

  async #readVisible(place: EntryPlace): Promise<readonly StoredArtifact[]> {
    const entry = isEntry(place) ? place : await this.#entryAt(place);
    return entry === null ? [] : readWithholding(this.#source, entry, this.#pace.begin(TURN_MS));
  }

  async #entryAt({ tree_id, seq }: EntryPlace): Promise<TreeEntry | null> {
    for await (const entry of this.#source.tree(tree_id, seq)) return entry.seq === seq ? entry : null;
    return null;
  }
}

const isEntry = (place: EntryPlace): place is TreeEntry => 'text' in place && 'type' in place && 'log_index' in place;

function isGranted(
  grant: Exclude<ContentGrant, { kind: 'observers' }>,
  at: EntryPlace,
  artifact: StoredArtifact,
): boolean {
  if (isWithheld(artifact)) return true;
  if (grant.kind === 'export') return artifact.case_id === grant.case_id;
  const { place, sha256 } = grant;
  return place.tree_id === at.tree_id && place.seq === at.seq && artifactRef(artifact).hash_sha256 === sha256;
}
