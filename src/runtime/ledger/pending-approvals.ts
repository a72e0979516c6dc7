// Pending approvals, for people to read (D7). A person approves a digest. The request shown with it always hashes to
// that digest, or is not shown.

import { approvalPolicyFor } from '../../../machines/approval-ballot.js';
import { isJsonObject, type JsonObject, parseOwnJson } from '../../core/contract/json.js';
import type { ApprovalBallot, ApprovalEntry, ApprovalVote } from '../../core/contract/run/approval.js';
import { artifactRef, isWithheld } from '../../core/contract/artifact-ref.js';
import type { VerifiedIdentity } from '../../core/contract/run/verified-identity.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import { personOf } from '../../names/person-name.js';
import { LiveTrees } from '../../engine/trees/live-trees.js';
import { readIntegrated } from './integrated-log.js';
import type { Tree } from '../../kernel/tree.js';
import { approvalDecider, ruleOfEntry } from '../../core/policy/policy-features.js';
import type { Policy } from '../../core/policy/policy.js';
import type { EntryPlace, LedgerStore, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { ReadControl } from '../../engine/ports/pace.js';
import { approverAudience, OBSERVERS } from '../content/audience.js';
import { ContentReader } from '../content/content-reader.js';
import { requestIn, type ApprovedRequest } from './request-content.js';
import { TreeFolds, type FoldEnvironment, type TreeFold } from './tree-folds.js';

export type { ApprovedRequest } from './request-content.js';

/** A person who wants to read a request. */
export interface Approver {
  readonly actor: string;
  readonly role: string;
  /** The person behind the actor, if it has another name. */
  readonly person?: string;
  readonly identity?: VerifiedIdentity;
}

/** A pending request with everything that a person needs to decide about it. */
export interface PendingApproval {
  /** The requesting run: a promotion, an export, or an agent. */
  readonly run_id: string;
  readonly case_id: string | null;
  readonly digest: string;
  /** `promotion`, `export`, or the action's name. */
  readonly name: string;
  /**
   * The exact request: its digest was computed again. Null if the ledger does not have it, or `withheld` stands for it.
   */
  readonly request: ApprovedRequest | null;
  /** If a lane withholds the request from this reader: hash and size of the content that contains it. */
  readonly withheld: { readonly sha256: string; readonly bytes: number } | null;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly votes: readonly ApprovalVote[];
  readonly quorum: number;
  readonly approver_roles: readonly string[];
  /** The conditions that ask for the approval, with their `@message`; absent if none does. */
  readonly conditions?: readonly { readonly id: string; readonly message: string | null }[];
}

/** A pending request, and the entry of the log that contains it; null if the ledger does not show that. */
export interface SourcedApproval {
  readonly approval: PendingApproval;
  readonly source: { readonly log_index: number; readonly sha256: string } | null;
}

/** The same, with the entry by its place in the tree. */
interface ApprovalInTree {
  readonly approval: PendingApproval;
  readonly source: RequestSource | null;
}

/** The pending approvals of a ledger. Trees with requests are folded; others are only scanned, once. */
export class PendingApprovals {
  readonly #store: LedgerStore;
  readonly #requests: TreeFolds<RequestSources>;
  readonly #overlay: () => OverlayFact | null;

  /** @param overlay the emergency overlay in force */
  constructor(environment: FoldEnvironment, overlay: () => OverlayFact | null) {
    this.#store = environment.store;
    this.#overlay = overlay;
    this.#requests = new TreeFolds(environment, () => new RequestFold(), REQUESTS_CACHED_MAX);
  }

  /**
   * Every request that people can still decide about, in the order of the trees.
   * @param now requests that have expired by then are omitted
   * @param by as for `find`
   * @throws LedgerError LEDGER_TAMPERED for a tree that cannot be folded
   */
  async *list(now: string, by: Approver | null = null, control?: ReadControl): AsyncIterable<PendingApproval> {
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { tree_id, ended } of this.#store.trees(options)) {
      if (!ended) for await (const { approval } of this.#pendingIn(tree_id, { now, by, control })) yield approval;
    }
  }

  /** The number of requests that people can still decide about. Reads only trees that have not ended. */
  async count(now: string): Promise<number> {
    let count = 0;
    for await (const { tree_id } of this.#store.openTrees()) {
      const pending = this.#pendingIn(tree_id, { now, by: null })[Symbol.asyncIterator]();
      while ((await pending.next()).done !== true) count += 1;
    }
    return count;
  }

  /**
   * A request of a tree that people can still decide about, or null.
   * @param by a person, who sees a withheld request if they may vote on this very one. The caller records the reading
   * before it passes the request on
   * @throws LedgerError LEDGER_TAMPERED
   */
  async find(
    { tree_id, run_id, digest }: Pick<PendingApproval, 'run_id' | 'digest'> & { readonly tree_id: string },
    now: string,
    by: Approver | null = null,
  ): Promise<SourcedApproval | null> {
    for await (const requested of this.#pendingIn(tree_id, { now, by })) {
      const { approval, source } = requested;
      if (approval.run_id !== run_id || approval.digest !== digest) continue;
      return { approval, source: source === null ? null : await this.#locate(source) };
    }
    return null;
  }

  /** @returns null while the entry is not integrated */
  async #locate({ tree_id, seq, sha256 }: RequestSource): Promise<SourcedApproval['source']> {
    for await (const { log_index } of readIntegrated(this.#store.tree(tree_id, seq))) return { log_index, sha256 };
    return null;
  }

  async *#pendingIn(tree_id: string, query: ApprovalQuery): AsyncIterable<ApprovalInTree> {
    const requested = await this.#requests.get(tree_id, query.control);
    if (requested.size === 0) return;
    // One tree at a time, without a cache.
    const tree = await new LiveTrees(this.#store, 0, Infinity).get(tree_id);
    if (tree !== null) {
      const queryNow = { ...query, overlay: this.#overlay() };
      yield* findPending(tree, requested, new ContentReader(this.#store), queryNow);
    }
  }
}

/** The artifact and entry of each request, by digest. */
type RequestSources = ReadonlyMap<string, RequestSource>;

interface RequestSource extends EntryPlace {
  readonly case_id: string | null;
  readonly sha256: string;
}

/** Limit over all cached trees: requests, and runs that may make one. */
const REQUESTS_CACHED_MAX = 20_000;
const APPROVAL_REQUIRED = '"rule_id":"approval.required"';

/** Collects the requests of a tree. */
class RequestFold implements TreeFold<RequestSources> {
  readonly #requests = new Map<string, RequestSource>();
  /** The latest content of each run: the proposal of an agent, or the next promotion or export of the tree. */
  readonly #sources = new Map<string, RequestSource>();
  /** Always: the fold does not see that a tree has ended, and approvals of ended trees are never read. */
  isEvictable = true;

  apply(entry: TreeEntry): void {
    this.isEvictable = false;
    const input = entry.type === 'input' ? contentOf(entry) : null;
    if (input !== null) this.#sources.set(input.run_id, input);
    if (entry.type !== 'audit_event' || !entry.text.includes(APPROVAL_REQUIRED)) return;
    const { parent_run_id = '', request_hash_sha256: digest } = bodyOf(entry) as unknown as AuditEvent;
    const content = this.#sources.get(parent_run_id);
    if (digest !== undefined && content !== undefined) this.#requests.set(digest, content);
  }

  result(): RequestSources {
    return new Map(this.#requests);
  }

  get size(): number {
    return 1 + this.#requests.size + this.#sources.size;
  }
}

/** The content that an input brings to a run; null for inputs without a request. */
function contentOf(entry: TreeEntry): (RequestSource & { readonly run_id: string }) | null {
  // Most inputs are of other kinds, and need not be parsed.
  if (!/"kind":"(?:proposal|start_run)"/.test(entry.text)) return null;
  const { kind, run_id, payload, request } = bodyOf(entry);
  const ref = kind === 'proposal' ? payload : request;
  if (typeof run_id !== 'string' || !isJsonObject(ref) || typeof ref['hash_sha256'] !== 'string') return null;
  const { case_id, hash_sha256 } = ref;
  return {
    run_id,
    case_id: typeof case_id === 'string' ? case_id : null,
    sha256: hash_sha256,
    tree_id: entry.tree_id,
    seq: entry.seq,
  };
}

const bodyOf = ({ text }: TreeEntry): JsonObject => (parseOwnJson(text) as { readonly body: JsonObject }).body;

/** The time, the reader (null for everyone), and the control of the read. */
interface ApprovalQuery {
  readonly now: string;
  readonly by: Approver | null;
  readonly control?: ReadControl | undefined;
}

/** The emergency overlay in force. */
interface UnderOverlay {
  readonly overlay: OverlayFact | null;
}

async function* findPending(
  tree: Tree,
  requested: RequestSources,
  reader: ContentReader,
  query: ApprovalQuery & UnderOverlay,
): AsyncIterable<ApprovalInTree> {
  const { policy } = tree;
  if (policy === null) return;
  const agents = tree.runs.map(({ context }) => context).filter(({ run_kind }) => run_kind === 'agent');
  for (const run of [...agents, ...tree.pendingHighRiskRuns]) {
    if (!tree.isLive(run.run_id)) continue;
    for (const entry of tree.approvals(run.run_id)?.entries ?? []) {
      if (entry.state !== 'open' || entry.expires_at <= query.now) continue;
      const content = requested.get(entry.digest);
      const found = content === undefined ? null : await loadRequest(content, { run, entry, policy }, reader, query);
      const source = found === null || content === undefined ? null : content;
      yield { approval: toPendingApproval(run, entry, found, policy), source };
    }
  }
}

/** A request of a run, from its approval book. */
interface RequestContext {
  readonly run: RunContext;
  readonly entry: ApprovalEntry;
  readonly policy: Policy;
}

/**
 * The request in its content, if it has the digest; the hash of that content if a lane withholds it from this reader;
 * null if the ledger does not have it.
 */
async function loadRequest(
  { tree_id, seq, sha256 }: RequestSource,
  requested: RequestContext,
  reader: ContentReader,
  { by, ...at }: Pick<ApprovalQuery, 'by' | 'now'> & UnderOverlay,
): Promise<Pick<PendingApproval, 'request' | 'withheld'> | null> {
  const place = { tree_id, seq };
  const audience = by !== null && isApprover(requested, by, at) ? approverAudience(place, sha256) : OBSERVERS;
  const source = await reader.read(place, audience);
  const found = source.find((artifact) => artifactRef(artifact).hash_sha256 === sha256);
  if (found === undefined) return null;
  if (isWithheld(found)) {
    return found.withheld === 'lane' ? { request: null, withheld: { sha256, bytes: found.byte_size } } : null;
  }
  const request = extractRequest(found.bytes, requested);
  return request === null ? null : { request, withheld: null };
}

/**
 * Whether a vote of this person on this very request could count: in this role, not on their own request, and not while
 * the overlay suspends them or cannot be trusted. Names are compared as for votes (C87).
 */
function isApprover(
  { run, entry, policy }: RequestContext,
  { actor, role, person: name = actor, identity }: Approver,
  { now, overlay }: Pick<ApprovalQuery, 'now'> & UnderOverlay,
): boolean {
  if (overlay !== null && 'problem' in overlay) return false;
  const person = personOf(name);
  if (typeof person === 'string') return false;
  const ballot: ApprovalBallot = {
    for_run: run.run_id,
    digests: [entry.digest],
    decision: 'reject',
    approver: {
      actor: { actor_type: 'human', actor_id: actor },
      role_id: role,
      person,
      ...(identity === undefined ? {} : { identity }),
    },
    at: now,
  };
  const rules = approvalPolicyFor(policy, ballot, overlay);
  const { verdicts } = approvalDecider().countBallot({ run_id: run.run_id, entries: [entry] }, ballot, rules);
  return verdicts.some(({ counted }) => counted);
}

function toPendingApproval(
  { run_id, case_id }: RunContext,
  entry: ApprovalEntry,
  found: Pick<PendingApproval, 'request' | 'withheld'> | null,
  { approvals, conditions }: Policy,
): PendingApproval {
  const { digest, name, requested_by, requested_at, expires_at, votes } = entry;
  const rule = ruleOfEntry(approvals, entry);
  const { quorum = 0, approver_roles = [] } = rule ?? {};
  const { request, withheld } = found ?? { request: null, withheld: null };
  const requested = { digest, name, request, withheld, requested_by, requested_at, expires_at, votes };
  const asking = entry.obligation?.conditions.map((id) => ({
    id,
    message: conditions?.all.find((condition) => condition.id === id)?.message ?? null,
  }));
  const approval = { run_id, case_id, ...requested, quorum, approver_roles };
  return asking === undefined ? approval : { ...approval, conditions: asking };
}

/** The request in its content, if it has the digest. */
function extractRequest(bytes: Uint8Array, { entry, ...requesting }: RequestContext): ApprovedRequest | null {
  const found = requestIn(bytes, requesting);
  return found?.digest === entry.digest ? found.request : null;
}
