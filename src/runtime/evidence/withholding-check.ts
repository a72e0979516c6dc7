// Whether a bundle may hold hashes in place of content. An operator with the key can write any line, so one that
// withholds
// is accepted only for a reason that the verifier can check itself.

import {
  artifactRef,
  canBeWithheld,
  isSystemRef,
  isWithheld,
  type Artifact,
  type StoredArtifact,
} from '../../contract/artifact-ref.js';
import { isOpeningInput, type Entry } from '../../contract/run/entry.js';
import { pinReferences, referencesOf } from '../../kernel/fold.js';
import { LaneWithholding } from './lane-withholding.js';

/**
 * Takes the entries of a bundle in their order.
 *
 *   W1. Policies, machine definitions and all other system content are never withheld.
 *   W2. What a lane withholds, the lanes policy that its tree has pinned says so: the rule by which bundles are written
 *       is applied again.
 *   W3. What was erased cannot be checked here: it counts as not checked, in every verdict.
 */
export class WithholdingCheck {
  readonly #lanes = new LaneWithholding();

  /**
   * @param entry null for an entry that tells nothing of runs and brought nothing
   * @returns why the line is refused, or null
   */
  problemOf(entry: Entry | null, artifacts: readonly StoredArtifact[]): string | null {
    const system = artifacts.find((artifact) => isWithheld(artifact) && !canBeWithheld(artifact));
    if (system !== undefined) return `it withholds system content (${system.kind}), which nothing may withhold`;
    if (entry === null) return null;
    if (!hasPinnedPolicies(entry, artifacts)) return 'it does not bring the policies that its tree has pinned';
    const expected = this.#lanes.process(entry, artifacts.map(withEmptyBytes));
    const wrong = artifacts.findIndex(
      (artifact, at) => isWithheld(artifact) && artifact.withheld === 'lane' && !isWithheld(expected[at] ?? artifact),
    );
    if (wrong === -1) return null;
    return `it withholds content (${artifacts[wrong]?.kind ?? ''}) that the pinned lanes policy does not withhold`;
  }
}

/**
 * The lanes are read from the policies of an opening by their places: those must be the ones that it refers to, and as
 * system content: a policy that is said to be content of a case could be withheld like that.
 */
function hasPinnedPolicies({ type, body }: Entry, artifacts: readonly StoredArtifact[]): boolean {
  if (type !== 'input' || !isOpeningInput(body)) return true;
  if (!pinReferences(body).every(isSystemRef)) return false;
  const pinned = referencesOf(body).map(({ hash_sha256 }) => hash_sha256);
  return pinned.join() === artifacts.map((artifact) => artifactRef(artifact).hash_sha256).join();
}

const NO_BYTES = new Uint8Array();

/**
 * The artifact as it was before it was withheld, but for its bytes: which lane it belongs to does not depend on
 * those.
 */
const withEmptyBytes = (artifact: StoredArtifact): Artifact =>
  isWithheld(artifact) ? { kind: artifact.kind, case_id: artifact.case_id, bytes: NO_BYTES } : artifact;
