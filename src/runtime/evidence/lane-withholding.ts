// Which content a lane withholds: what its runs said or brought, by the policy that their tree has pinned (S4-62). Its
// hash stands in its place for everyone but the audiences of decision 0035. Memory: the runs of trees in which some
// lane withholds.

import {
  artifactRef,
  isWithheld,
  type Artifact,
  type StoredArtifact,
  canBeWithheld,
  isSystemRef,
} from '../../contract/artifact-ref.js';
import {
  isOpeningInput,
  type Entry,
  type OpeningInput,
  type RecordedInput,
  type RunCreated,
} from '../../contract/run/entry.js';
import { InvariantError, PolicyError } from '../../errors.js';
import { pinReferences, referencesOf } from '../../kernel/fold.js';
import { policyOf } from '../../kernel/pinned-policy.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../ports/ledger/ledger-store.js';
import type { Pause } from '../../ports/pace.js';
import { parseStoredEntry } from '../ledger/stored-entry.js';

/** A ledger as a bundle holds it. Its contents are asked for entry by entry, each as it comes. */
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
      const artifacts = await store.artifactsOf(place);
      if (current?.tree_id !== place.tree_id || current.seq !== place.seq)
        throw new InvariantError('contents are asked for as their entries come');
      return lanes.process(parseStoredEntry(current), artifacts);
    },
  };
}

/**
 * What a bundle would hold of the content that one entry brought, for whoever looks at that entry alone. The entries of
 * its tree before it are read again only where some lane withholds.
 * @param pause of the pass over those entries: a tree may have very many
 */
export async function readWithholding(
  source: Pick<LedgerStore, 'tree' | 'artifactsOf'>,
  at: TreeEntry,
  pause: Pause,
): Promise<readonly StoredArtifact[]> {
  const artifacts = await source.artifactsOf(at);
  if (artifacts.length === 0) return artifacts;
  const lanes = new LaneWithholding();
  for await (const stored of source.tree(at.tree_id)) {
    if (stored.seq >= at.seq) break;
    const turn = pause();
    if (turn !== undefined) await turn;
    if (stored.seq === 0) lanes.process(parseStoredEntry(stored), await source.artifactsOf(stored));
    else if (stored.type === 'run_created') lanes.process(parseStoredEntry(stored), []);
    if (!lanes.hasTree(at.tree_id)) return artifacts;
  }
  return lanes.process(parseStoredEntry(at), artifacts);
}

type EvidenceSource = Pick<LedgerStore, 'log' | 'artifactsOf' | 'archives'>;

/** What the lanes that withhold a content say: which they are, and whether each of them lets an export hold it. */
export interface WithholdingRule {
  /** Empty where the pinned policy cannot be read: then no lane has a say. */
  readonly lanes: readonly string[];
  readonly exports: boolean;
}

/** The lanes of a policy that withhold content, each with whether exports may hold it. */
type WithholdingLanes = ReadonlyMap<string, boolean>;

/** A tree in which some lane withholds: which ones, null for all of them, and the lanes of its runs. */
interface TreeLanes {
  readonly withholding: WithholdingLanes | null;
  /** Of a session: that of its agents, which is that of its spec and reports. */
  readonly session: string | null;
  readonly runs: Map<string, string | null>;
}

/** Which lanes withhold what the entries of a log brought. Takes the entries in their order. */
export class LaneWithholding {
  readonly #trees = new Map<string, TreeLanes>();

  /** Whether some lane of a tree withholds anything. */
  hasTree(tree_id: string): boolean {
    return this.#trees.has(tree_id);
  }

  /** Takes the entries of a log in their order. @returns what the bundle holds of the content that this one brought */
  process({ type, tree_id, body }: Entry, artifacts: readonly StoredArtifact[]): readonly StoredArtifact[] {
    if (type === 'run_created') this.addRun(tree_id, body);
    if (type !== 'input') return artifacts;
    if (isOpeningInput(body)) this.addOpening(tree_id, body, artifacts);
    if (!this.hasTree(tree_id)) return artifacts;
    return artifacts.map((artifact) =>
      this.ruleFor(tree_id, body, artifact.kind) === null ? artifact : omitContent(artifact),
    );
  }

  /** @param artifacts what the opening brought: the pinned policy */
  addOpening(tree_id: string, opening: OpeningInput, artifacts: readonly StoredArtifact[]): void {
    const lanes = lanesOf(opening, artifacts);
    if (lanes.withholding?.size !== 0) this.#trees.set(tree_id, lanes);
  }

  addRun(tree_id: string, { run_id, lane_id }: RunCreated): void {
    this.#trees.get(tree_id)?.runs.set(run_id, lane_id);
  }

  /** @returns what the lanes say that withhold content of this kind which the input brought; null where none does */
  ruleFor(tree_id: string, input: RecordedInput, kind: string): WithholdingRule | null {
    const tree = this.#trees.get(tree_id);
    if (tree === undefined) return null;
    const { withholding } = tree;
    if (withholding === null) return { lanes: [], exports: false };
    // A note may speak of any run of its tree.
    const named = kind === 'note' ? withholding.keys() : lanesFor(input, kind, tree);
    const lanes = [...new Set(named)].filter((lane) => withholding.has(lane));
    return lanes.length === 0 ? null : { lanes, exports: lanes.every((lane) => withholding.get(lane) === true) };
  }
}

/** A policy that cannot be read withholds everything: nothing was ever allowed under it. */
function lanesOf(opening: OpeningInput, artifacts: readonly StoredArtifact[]): TreeLanes {
  const session = opening.kind === 'open_session' ? opening.agent.lane_id : null;
  const policies = artifacts.filter((artifact): artifact is Artifact => !isWithheld(artifact));
  return { withholding: withholdingLanesOf(policies), session, runs: new Map() };
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
    if (error instanceof PolicyError) return null;
    throw error;
  }
}
/** The lanes any of which keeps the content: what a run has brought is its agent's to see, and to be told again. */
function lanesFor(input: RecordedInput, kind: string, { session, runs }: TreeLanes): readonly string[] {
  if (input.kind === 'start_run' || input.kind === 'start_agent') return [input.lane_id];
  const parts = input.run_id.split('.');
  const ids = parts.map((_, depth) => parts.slice(0, depth + 1).join('.'));
  const own = ids.flatMap((run_id) => runs.get(run_id) ?? []);
  const base = own.length === 0 && session !== null ? [session] : own;
  // A response is made of what the agent's runs have brought, and a report of what those of its session have.
  if (kind !== 'response' && kind !== 'session_report') return base;
  const below = [...runs].flatMap(([run_id, lane]) => (run_id.startsWith(`${input.run_id}.`) ? (lane ?? []) : []));
  return [...base, ...below];
}

/** The hash of a case's content in its place; policies and machine definitions are what everything is checked by. */
export function omitContent(artifact: StoredArtifact): StoredArtifact {
  const { kind, case_id } = artifact;
  if (case_id === null || isWithheld(artifact)) return artifact;
  const { hash_sha256: sha256, byte_size } = artifactRef(artifact);
  return { kind, case_id, withheld: 'lane', sha256, byte_size: byte_size ?? 0 };
}

// Whether a bundle may hold hashes in place of content. An operator with the key can write any line, so one that
// withholds
// is accepted only for a reason that the verifier can check itself.

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
