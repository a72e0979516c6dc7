// Which lanes withhold content of a case, over all of its trees: content that an export of the case would contain
// (C84).

import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import { isOpeningInput, type OpeningInput } from '../../core/contract/run/entry.js';
import { valuesOf } from '../../core/contract/policy/pins.js';
import { referencesOf } from '../../core/contract/run/input.js';
import { loadPinnedFeatures } from '../../kernel/pinned-policy.js';
import type { EntryPlace, LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { CaseEntry, CaseHistory } from '../case/case-history.js';
import { LaneWithholding } from './lane-withholding.js';

/** Stands for the lanes of a tree whose pinned policy cannot be read. No lane can have this id. */
export const UNREADABLE_POLICY = '(unreadable policy)';

/**
 * @returns each lane that withholds content of the case, and whether it lets an approved export contain that content
 * @throws LedgerError LEDGER_ARCHIVED, LEDGER_TAMPERED
 */
export async function findWithheldLanes(
  store: Pick<LedgerStore, 'artifactsOf'>,
  history: CaseHistory,
): Promise<ReadonlyMap<string, boolean>> {
  const found = new Map<string, boolean>();
  const lanes = new LaneWithholding();
  const pinned = new PinnedPolicies(store);
  for await (const entries of history.entries(['input', 'run_created'])) {
    for (const caseEntry of entries) {
      const { entry } = caseEntry;
      if (entry.type === 'run_created') lanes.addRun(entry.tree_id, entry.body);
      if (entry.type !== 'input') continue;
      if (isOpeningInput(entry.body)) lanes.addOpening(entry.tree_id, entry.body, await pinned.load(entry.body, entry));
      if (lanes.hasTree(entry.tree_id)) addWithheldLanes(found, lanes, caseEntry, history.slice.case_id);
    }
  }
  return found;
}

/** A lane may withhold content in many trees: exports may contain it only if the lane permits that in all of them. */
function addWithheldLanes(
  found: Map<string, boolean>,
  withholding: LaneWithholding,
  { entry }: CaseEntry,
  case_id: string,
): void {
  if (entry.type !== 'input') return;
  for (const ref of referencesOf(entry.body)) {
    const rule = ref.case_id === case_id ? withholding.ruleFor(entry.tree_id, entry.body, ref.artifact_kind) : null;
    if (rule === null) continue;
    const lanes = rule.lanes.length === 0 ? [UNREADABLE_POLICY] : rule.lanes;
    for (const lane of lanes) found.set(lane, rule.exports && found.get(lane) !== false);
  }
}

/** Trees of one case share few policies: each is read once. */
class PinnedPolicies {
  readonly #store: Pick<LedgerStore, 'artifactsOf'>;
  readonly #known = new Map<string, readonly StoredArtifact[]>();

  constructor(store: Pick<LedgerStore, 'artifactsOf'>) {
    this.#store = store;
  }

  async load({ policies, machines }: OpeningInput, place: EntryPlace): Promise<readonly StoredArtifact[]> {
    const hashes = valuesOf(policies).map(({ artifact }) => artifact.hash_sha256);
    const key = [...hashes, machines.hash_sha256].join(' ');
    const known = this.#known.get(key) ?? (await this.#store.artifactsOf(place));
    await loadPinnedFeatures(known);
    this.#known.set(key, known);
    return known;
  }
}
