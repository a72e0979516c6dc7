// Which content a lane withholds: content of its runs, by the policy that their tree has pinned (S4-62). Everyone
// except the audiences of decision 0035 sees its hash instead. Memory: the runs of trees in which a lane withholds.

import {
  artifactRef,
  isWithheld,
  type Artifact,
  type StoredArtifact,
  canBeWithheld,
  isSystemRef,
} from '../../core/contract/artifact-ref.js';
import {
  isOpeningInput,
  type Entry,
  type OpeningInput,
  type RecordedInput,
  type RunCreated,
} from '../../core/contract/run/entry.js';
import { InvariantError, PolicyError } from '../../core/errors.js';
import { readContentToFold } from '../../kernel/fold.js';
import { pinReferences, referencesOf } from '../../core/contract/run/input.js';
import { featureLaneId } from '../../core/contract/run/feature-vocabulary.js';
import { isUnsupported, pinnedArtifacts, policyOf } from '../../kernel/pinned-policy.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { Pause } from '../../engine/ports/pace.js';
import { parseStoredEntry } from '../ledger/stored-entry.js';

/**
 * A ledger in the form of an evidence bundle. The caller must read the content of each entry when it reads the entry.
 */
export function withholdByLanes(store: EvidenceSource): EvidenceSource {
  const lanes = new LaneWithholding();
  let current: StoredEntry | null = null;
  return {
    archives: store.archives,
    log: async function* (from) {
      for await (const stored of store.log(from)) {
        current = stored;
        yield stored;
      }
    },
    artifactsOf: async (place) => {
      if (current?.tree_id !== place.tree_id || current.seq !== place.seq)
        throw new InvariantError('contents are asked for as their entries come');
      const artifacts = await readContentToFold(current, store);
      return lanes.process(parseStoredEntry(current), artifacts);
    },
  };
}

/**
 * The content of one entry in the form of an evidence bundle. Earlier entries of the tree are read again only if a lane
 * withholds content.
 * @param pause yields to other work during that pass: a tree may have very many entries
 */
export async function readWithholding(
  source: Pick<LedgerStore, 'tree' | 'artifactsOf'>,
  at: TreeEntry,
  pause: Pause,
): Promise<readonly StoredArtifact[]> {
  const artifacts = await readContentToFold(at, source);
  if (artifacts.length === 0) return artifacts;
  const lanes = new LaneWithholding();
  for await (const stored of source.tree(at.tree_id)) {
    if (stored.seq >= at.seq) break;
    const turn = pause();
    if (turn !== undefined) await turn;
    if (stored.seq === 0) lanes.process(parseStoredEntry(stored), await readContentToFold(stored, source));
    else if (stored.type === 'run_created') lanes.process(parseStoredEntry(stored), []);
    if (!lanes.hasTree(at.tree_id)) return artifacts;
  }
  return lanes.process(parseStoredEntry(at), artifacts);
}

type EvidenceSource = Pick<LedgerStore, 'log' | 'artifactsOf' | 'archives'>;

/** The lanes that withhold a content, and whether all of them let an export contain it. */
export interface WithholdingRule {
  /** Empty if the pinned policy cannot be read: then no lane decides. */
  readonly lanes: readonly string[];
  readonly exports: boolean;
}

/** The lanes of a policy that withhold content, each with whether exports may contain it. */
type WithholdingLanes = ReadonlyMap<string, boolean>;

/**
 * A tree in which a lane withholds content: the withholding lanes, null for all of them, and the lanes of its runs.
 */
interface TreeLanes {
  readonly withholding: WithholdingLanes | null;
  /** The lane of content that belongs to no run; null in a run tree. */
  readonly own: string | null;
  readonly runs: Map<string, string | null>;
}

/** Decides which content of entries is withheld. Takes the entries of a log in their order. */
export class LaneWithholding {
  readonly #trees = new Map<string, TreeLanes>();

  /** Whether a lane of this tree withholds content. */
  hasTree(tree_id: string): boolean {
    return this.#trees.has(tree_id);
  }

  /** Takes the next entry. @returns its content in the form of an evidence bundle */
  process({ type, tree_id, body }: Entry, artifacts: readonly StoredArtifact[]): readonly StoredArtifact[] {
    if (type === 'run_created') this.addRun(tree_id, body);
    if (type !== 'input') return artifacts;
    if (isOpeningInput(body)) this.addOpening(tree_id, body, artifacts);
    if (!this.hasTree(tree_id)) return artifacts;
    return artifacts.map((artifact) =>
      this.ruleFor(tree_id, body, artifact.kind) === null ? artifact : omitContent(artifact),
    );
  }

  /** @param artifacts the content of the opening: the pinned policy */
  addOpening(tree_id: string, opening: OpeningInput, artifacts: readonly StoredArtifact[]): void {
    const lanes = lanesOf(opening, artifacts);
    if (lanes.withholding?.size !== 0) this.#trees.set(tree_id, lanes);
  }

  addRun(tree_id: string, { run_id, lane_id }: RunCreated): void {
    this.#trees.get(tree_id)?.runs.set(run_id, lane_id);
  }

  /** @returns the rule of the lanes that withhold content of this kind from this input; null if none does */
  ruleFor(tree_id: string, input: RecordedInput, kind: string): WithholdingRule | null {
    const tree = this.#trees.get(tree_id);
    if (tree === undefined) return null;
    const { withholding } = tree;
    if (withholding === null) return { lanes: [], exports: false };
    // A note may concern any run of its tree.
    const named = kind === 'note' ? withholding.keys() : lanesFor(input, kind, tree);
    const lanes = [...new Set(named)].filter((lane) => withholding.has(lane));
    return lanes.length === 0 ? null : { lanes, exports: lanes.every((lane) => withholding.get(lane) === true) };
  }
}

/** A policy that cannot be read withholds everything: nothing was ever allowed under it. */
function lanesOf(opening: OpeningInput, artifacts: readonly StoredArtifact[]): TreeLanes {
  const pinned = pinnedArtifacts(opening, artifacts);
  const policies = pinned.filter((artifact): artifact is Artifact => !isWithheld(artifact));
  return { withholding: withholdingLanesOf(policies), own: featureLaneId(opening), runs: new Map() };
}

function withholdingLanesOf(policies: readonly Artifact[]): WithholdingLanes | null {
  try {
    const lanes = [...policyOf(policies).lanes.values()];
    return new Map(
      lanes.flatMap(({ lane_id, withholds_content, exports_content }) =>
        withholds_content === true ? [[lane_id, exports_content === true] as const] : [],
      ),
    );
  } catch (error) {
    if (error instanceof PolicyError || isUnsupported(error)) return null;
    throw error;
  }
}
/** The lanes that can withhold the content. An agent sees the content of its runs, and its responses may repeat it. */
function lanesFor(input: RecordedInput, kind: string, { own: ownLane, runs }: TreeLanes): readonly string[] {
  if (input.kind === 'start_run' || input.kind === 'start_agent') return [input.lane_id];
  const parts = input.run_id.split('.');
  const ids = parts.map((_, depth) => parts.slice(0, depth + 1).join('.'));
  const own = ids.flatMap((run_id) => runs.get(run_id) ?? []);
  const base = own.length === 0 && ownLane !== null ? [ownLane] : own;
  // A response derives from content of the agent's runs; a session report, from content of the session's runs.
  if (kind !== 'response' && kind !== 'session_report') return base;
  const below = [...runs].flatMap(([run_id, lane]) => (run_id.startsWith(`${input.run_id}.`) ? (lane ?? []) : []));
  return [...base, ...below];
}

/** Replaces content of a case by its hash. Policies and machine definitions stay: verification needs them. */
export function omitContent(artifact: StoredArtifact): StoredArtifact {
  const { kind, case_id } = artifact;
  if (case_id === null || isWithheld(artifact)) return artifact;
  const { hash_sha256: sha256, byte_size } = artifactRef(artifact);
  return { kind, case_id, withheld: 'lane', sha256, byte_size: byte_size ?? 0 };
}

// Checks hashes that stand in place of content in a bundle. An operator who has the key can write any line. So a
// withheld content is accepted only for a reason that the verifier can check itself.

/**
 * Takes the entries of a bundle in their order.
 *
 *   W1. Policies, machine definitions and all other system content are never withheld.
 *   W2. Content that a lane withholds is checked by applying the rule of the pinned lanes policy again.
 *   W3. Erased content cannot be checked here: every verdict counts it as not checked.
 */
export class WithholdingCheck {
  readonly #lanes = new LaneWithholding();

  /**
   * @param entry null for an entry without content that does not concern runs
   * @returns why the line is rejected, or null
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
 * The lanes are read from the policies of an opening by position, so they must be those that it references. They must
 * be system content: a policy that is declared as content of a case could itself be withheld.
 */
function hasPinnedPolicies({ type, body }: Entry, artifacts: readonly StoredArtifact[]): boolean {
  if (type !== 'input' || !isOpeningInput(body)) return true;
  if (!pinReferences(body).every(isSystemRef)) return false;
  const pinned = referencesOf(body).map(({ hash_sha256 }) => hash_sha256);
  return pinned.join() === artifacts.map((artifact) => artifactRef(artifact).hash_sha256).join();
}

const NO_BYTES = new Uint8Array();

/** The artifact before it was withheld, but without its bytes: its lane does not depend on them. */
const withEmptyBytes = (artifact: StoredArtifact): Artifact =>
  isWithheld(artifact) ? { kind: artifact.kind, case_id: artifact.case_id, bytes: NO_BYTES } : artifact;
