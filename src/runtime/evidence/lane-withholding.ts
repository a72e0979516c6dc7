// Which content stays out of a bundle: what a run said or brought whose lane withholds it, by the policy that its tree
// has pinned (S4-62). Its hash stands in its place. Memory: the runs of trees in which some lane withholds.

import { artifactRef, isWithheld, type Artifact, type StoredArtifact } from '../../contract/artifact-ref.js';
import type { Entry, RecordedInput } from '../../contract/entry.js';
import { InvariantError, PolicyError } from '../../errors.js';
import { policyOf } from '../../kernel/pinned.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../ports/ledger-store.js';
import { entryOf } from '../stored-entry.js';

/** A ledger as a bundle holds it. Its contents are asked for entry by entry, each as it comes. */
export function withheldByLanes(store: EvidenceSource): EvidenceSource {
  const lanes = new LaneWithholding();
  let present: StoredEntry | null = null;
  return {
    archives: store.archives,
    log: async function* (from) {
      for await (const stored of store.log(from)) {
        present = stored;
        yield stored;
      }
    },
    artifactsOf: async (place) => {
      const artifacts = await store.artifactsOf(place);
      if (present?.tree_id !== place.tree_id || present.seq !== place.seq)
        throw new InvariantError('contents are asked for as their entries come');
      return lanes.take(entryOf(present), artifacts);
    },
  };
}

/**
 * What a bundle would hold of the content that one entry brought, for whoever looks at that entry alone. The entries of
 * its tree before it are read again only where some lane withholds.
 */
export async function withheldAt(
  source: Pick<LedgerStore, 'tree' | 'artifactsOf'>,
  at: TreeEntry,
): Promise<readonly StoredArtifact[]> {
  const artifacts = await source.artifactsOf(at);
  if (artifacts.length === 0) return artifacts;
  const lanes = new LaneWithholding();
  for await (const stored of source.tree(at.tree_id)) {
    if (stored.seq >= at.seq) break;
    if (stored.seq === 0) lanes.take(entryOf(stored), await source.artifactsOf(stored));
    else if (stored.type === 'run_created') lanes.take(entryOf(stored), []);
    if (!lanes.knows(at.tree_id)) return artifacts;
  }
  return lanes.take(entryOf(at), artifacts);
}

type EvidenceSource = Pick<LedgerStore, 'log' | 'artifactsOf' | 'archives'>;

/** A tree in which some lane withholds: which ones, null for all of them, and the lanes of its runs. */
interface TreeLanes {
  readonly withholding: ReadonlySet<string> | null;
  /** Of a session: that of its agents, which is that of its spec and reports. */
  readonly session: string | null;
  readonly runs: Map<string, string | null>;
}

class LaneWithholding {
  readonly #trees = new Map<string, TreeLanes>();

  /** Whether some lane of a tree withholds anything. */
  knows(tree_id: string): boolean {
    return this.#trees.has(tree_id);
  }

  /** Takes the entries of a log in their order. @returns what the bundle holds of the content that this one brought */
  take({ type, tree_id, body }: Entry, artifacts: readonly StoredArtifact[]): readonly StoredArtifact[] {
    if (type === 'run_created') this.#trees.get(tree_id)?.runs.set(body.run_id, body.lane_id);
    if (type !== 'input') return artifacts;
    if (isOpening(body)) {
      const lanes = lanesOf(body, artifacts);
      if (lanes.withholding?.size !== 0) this.#trees.set(tree_id, lanes);
    }
    const tree = this.#trees.get(tree_id);
    if (tree === undefined) return artifacts;
    const { withholding } = tree;
    return artifacts.map((artifact) => {
      const withheld = withholding === null || lanesFor(body, artifact, tree).some((lane) => withholding.has(lane));
      return withheld ? withoutContent(artifact) : artifact;
    });
  }
}

const isOpening = (input: RecordedInput): input is Extract<RecordedInput, { kind: 'open' | 'open_session' }> =>
  input.kind === 'open' || input.kind === 'open_session';

/** A policy that cannot be read withholds everything: nothing was ever allowed under it. */
function lanesOf(
  opening: Extract<RecordedInput, { kind: 'open' | 'open_session' }>,
  artifacts: readonly StoredArtifact[],
): TreeLanes {
  const session = opening.kind === 'open_session' ? opening.agent.lane_id : null;
  const policies = artifacts.filter((artifact): artifact is Artifact => !isWithheld(artifact));
  return { withholding: withholdingIn(policies), session, runs: new Map() };
}

function withholdingIn(policies: readonly Artifact[]): ReadonlySet<string> | null {
  try {
    const lanes = [...policyOf(policies).lanes.values()];
    return new Set(lanes.flatMap(({ lane_id, withholds_content }) => (withholds_content === true ? [lane_id] : [])));
  } catch (error) {
    if (error instanceof PolicyError) return null;
    throw error;
  }
}

/** The lanes any of which keeps the content: what a run has brought is its agent's to see, and to be told again. */
function lanesFor(input: RecordedInput, { kind }: StoredArtifact, { session, runs }: TreeLanes): readonly string[] {
  if (input.kind === 'start_run') return [input.lane_id];
  const parts = input.run_id.split('.');
  const ids = parts.map((_, depth) => parts.slice(0, depth + 1).join('.'));
  const own = ids.flatMap((run_id) => runs.get(run_id) ?? []);
  const base = own.length === 0 && session !== null ? [session] : own;
  // A response is made of what the agent's runs have brought, and a report of what those of its session have.
  if (kind !== 'response' && kind !== 'session_report') return base;
  const below = [...runs].flatMap(([run_id, lane]) => (run_id.startsWith(`${input.run_id}.`) ? (lane ?? []) : []));
  return [...base, ...below];
}

/** Of a case's content only: policies and machine definitions are what everything is checked by. */
function withoutContent(artifact: StoredArtifact): StoredArtifact {
  const { kind, case_id } = artifact;
  if (case_id === null || isWithheld(artifact)) return artifact;
  const { hash_sha256: sha256, byte_size } = artifactRef(artifact);
  return { kind, case_id, withheld: 'lane', sha256, byte_size: byte_size ?? 0 };
}
