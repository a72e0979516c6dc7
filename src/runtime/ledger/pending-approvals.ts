// What people are asked to approve, for them to read (D7). An approval is of a digest; what is shown beside it is what
// gives that digest again, or nothing.

import type { ApprovalBallot, ApprovalEntry, ApprovalVote } from '../../contract/run/approval.js';
import { artifactRef, isWithheld } from '../../contract/artifact-ref.js';
import type { AuditEvent } from '../../contract/run/audit-event.js';
import { COMPARED_LOOKS, COMPARED_PERSONS } from '../../contract/policy/flags.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import type { RunContext } from '../../contract/run/run-context.js';
import { personOf } from '../../identity/person.js';
import { LiveTrees } from '../../engine/trees/live-trees.js';
import { readIntegrated } from '../../ledger/integrated-log.js';
import type { Tree } from '../../kernel/tree.js';
import { approvalDigest, approvalRuleFor, countBallot } from '../../policy/approval/approval.js';
import type { Policy } from '../../policy/policy.js';
import type { EntryPlace, LedgerStore, TreeEntry } from '../../ports/ledger/ledger-store.js';
import type { ReadControl } from '../../ports/pace.js';
import { authorizePaths } from '../../step/authorize-paths.js';
import { approverAudience, OBSERVERS } from '../content/audience.js';
import { ContentReader } from '../content/content-reader.js';
import { TreeFolds, type FoldEnvironment, type TreeFold } from './tree-folds.js';

/** What a run asks people to approve. */
export interface ApprovedRequest {
  readonly action: string;
  readonly args: JsonObject;
}

/** A person who wants to see a request. */
export interface Approver {
  readonly actor: string;
  readonly role: string;
}

/** A request that waits for people, with all that they have to know of it. */
export interface PendingApproval {
  /** The run that asks: a promotion, an export, or an agent. */
  readonly run_id: string;
  readonly case_id: string | null;
  readonly digest: string;
  /** `promotion`, `export`, or the action's name. */
  readonly name: string;
  /**
   * What exactly is approved: it has been made into the digest once more. Null where the ledger does not have it, or
   * `withheld` stands for it.
   */
  readonly request: ApprovedRequest | null;
  /** Of a request that a lane withholds from this reader: the hash and size of the content that holds it. */
  readonly withheld: { readonly sha256: string; readonly bytes: number } | null;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly votes: readonly ApprovalVote[];
  readonly quorum: number;
  readonly approver_roles: readonly string[];
}

/** A request that waits, and which entry of the log brought its content; null where the ledger does not show that. */
export interface SourcedApproval {
  readonly approval: PendingApproval;
  readonly source: { readonly log_index: number; readonly sha256: string } | null;
}

/** The same, with the entry by its place in the tree. */
interface ApprovalInTree {
  readonly approval: PendingApproval;
  readonly source: RequestSource | null;
}

/** What waits for people in a ledger. Trees that have asked are folded; others are only looked through, once. */
export class PendingApprovals {
  readonly #store: LedgerStore;
  readonly #requests: TreeFolds<RequestSources>;

  constructor(environment: FoldEnvironment) {
    this.#store = environment.store;
    this.#requests = new TreeFolds(environment, () => new RequestFold(), REQUESTS_CACHED_MAX);
  }

  /**
   * Every request that people can still answer, in the order of the trees.
   * @param now what has expired by then is left out
   * @param by as for `one`
   * @throws LedgerError LEDGER_TAMPERED for a tree that does not fold
   */
  async *list(now: string, by: Approver | null = null, control?: ReadControl): AsyncIterable<PendingApproval> {
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { tree_id, ended } of this.#store.trees(options)) {
      if (!ended) for await (const { approval } of this.#pendingIn(tree_id, { now, by, control })) yield approval;
    }
  }

  /**
   * One request of a tree that people can still answer, or null.
   * @param by a person who is shown a withheld request where they may vote on this very one. The caller records the
   * reading before it hands the request on
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

  /** @returns null while the entry waits to be integrated */
  async #locate({ tree_id, seq, sha256 }: RequestSource): Promise<SourcedApproval['source']> {
    for await (const { log_index } of readIntegrated(this.#store.tree(tree_id, seq))) return { log_index, sha256 };
    return null;
  }

  async *#pendingIn(tree_id: string, query: ApprovalQuery): AsyncIterable<ApprovalInTree> {
    const requested = await this.#requests.get(tree_id, query.control);
    if (requested.size === 0) return;
    // One tree at a time, and none of them kept.
    const tree = await new LiveTrees(this.#store, 0, Infinity).get(tree_id);
    if (tree !== null) yield* findPending(tree, requested, new ContentReader(this.#store), query);
  }
}

/** Where the content of each request lies, by its digest: the artifact that brought it, and with which entry. */
type RequestSources = ReadonlyMap<string, RequestSource>;

interface RequestSource extends EntryPlace {
  readonly case_id: string | null;
  readonly sha256: string;
}

/** Of all trees that are kept: requests, and runs that may make one. */
const REQUESTS_CACHED_MAX = 20_000;
const APPROVAL_REQUIRED = '"rule_id":"approval.required"';

/** What was asked in a tree. */
class RequestFold implements TreeFold<RequestSources> {
  readonly #requests = new Map<string, RequestSource>();
  /** What each run was given last: an agent its proposal, the tree its next promotion or export. */
  readonly #sources = new Map<string, RequestSource>();
  /** That a tree has ended is not seen here: nobody asks for one that has. */
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

/** The content that an input brings to a run; null for inputs that ask for nothing. */
function contentOf(entry: TreeEntry): (RequestSource & { readonly run_id: string }) | null {
  // Most inputs are others, and need not be parsed.
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

const bodyOf = ({ text }: TreeEntry): JsonObject => (JSON.parse(text) as { readonly body: JsonObject }).body;

/** At what time, for whom (without a person for everyone), and what can end the reading. */
interface ApprovalQuery {
  readonly now: string;
  readonly by: Approver | null;
  readonly control?: ReadControl | undefined;
}

async function* findPending(
  tree: Tree,
  requested: RequestSources,
  reader: ContentReader,
  query: ApprovalQuery,
): AsyncIterable<ApprovalInTree> {
  const { policy } = tree;
  if (policy === null) return;
  const agents = tree.runs.map(({ context }) => context).filter(({ run_kind }) => run_kind === 'agent');
  for (const run of [...agents, ...tree.pendingHighRiskRuns]) {
    if (!tree.isLive(run.run_id)) continue;
    for (const entry of tree.approvals(run.run_id)?.entries ?? []) {
      if (entry.state !== 'open' || entry.expires_at <= query.now) continue;
      const content = requested.get(entry.digest);
      const found = content === undefined ? null : await loadRequest(content, { run, entry, policy }, reader, query.by);
      const source = found === null || content === undefined ? null : content;
      yield { approval: toPendingApproval(run, entry, found, policy), source };
    }
  }
}

/** A request of a run, as its book has it. */
interface RequestContext {
  readonly run: RunContext;
  readonly entry: ApprovalEntry;
  readonly policy: Policy;
}

/**
 * The request in the content that brought it, if it is the one of the digest; the hash of that content where a lane
 * withholds it from this reader; null where the ledger does not have it.
 */
async function loadRequest(
  { tree_id, seq, sha256 }: RequestSource,
  requested: RequestContext,
  reader: ContentReader,
  by: Approver | null,
): Promise<Pick<PendingApproval, 'request' | 'withheld'> | null> {
  const place = { tree_id, seq };
  const audience = by !== null && isApprover(requested, by) ? approverAudience(place, sha256) : OBSERVERS;
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
 * Whether a vote of this person on this very request could count: in the role, and with no request of their own. Names
 * are compared as those of votes are (C87).
 */
function isApprover({ run, entry, policy }: RequestContext, { actor, role }: Approver): boolean {
  const person = personOf(actor);
  if (typeof person === 'string') return false;
  const ballot: ApprovalBallot = {
    for_run: run.run_id,
    digests: [entry.digest],
    decision: 'reject',
    approver: { actor: { actor_type: 'human', actor_id: actor }, role_id: role, person },
    at: entry.requested_at,
  };
  const { approvals, roles, flags } = policy;
  const rules = { approvals, roles, byPerson: flags.has(COMPARED_PERSONS), byLooks: flags.has(COMPARED_LOOKS) };
  const { verdicts } = countBallot({ run_id: run.run_id, entries: [entry] }, ballot, rules);
  return verdicts.some(({ counted }) => counted);
}

function toPendingApproval(
  { run_id, case_id }: RunContext,
  { digest, name, requested_by, requested_at, expires_at, votes }: ApprovalEntry,
  found: Pick<PendingApproval, 'request' | 'withheld'> | null,
  { approvals }: Policy,
): PendingApproval {
  const rule = approvalRuleFor(approvals, name);
  const { quorum = 0, approver_roles = [] } = rule ?? {};
  const { request, withheld } = found ?? { request: null, withheld: null };
  const requested = { digest, name, request, withheld, requested_by, requested_at, expires_at, votes };
  return { run_id, case_id, ...requested, quorum, approver_roles };
}

/** The request in the content that brought it, if that is the one of the digest. */
function extractRequest(
  bytes: Uint8Array,
  { run: { run_id, case_id }, entry: { digest }, policy }: RequestContext,
): ApprovedRequest | null {
  const { action, args } = parseObject(bytes);
  if (typeof action !== 'string' || !isJsonObject(args)) return null;
  const request = { action, args: canonicalizeArgs(action, args, policy) };
  return approvalDigest({ ...request, case_id, run_id }) === digest ? request : null;
}

function parseObject(bytes: Uint8Array): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Paths as they canonically are, whatever stands there: nothing is decided here. */
function canonicalizeArgs(action: string, args: JsonObject, policy: Policy): JsonObject {
  const definition = policy.catalogue.action(action);
  if (definition === undefined || definition.paths.length === 0) return args;
  const paths = definition.paths.map(() => ({ status: 'absent' }) as const);
  const canonical = authorizePaths({ definition, args, facts: { paths, usage: { bytes: 0, files: 0 } }, policy });
  return canonical.ok ? canonical.value : args;
}
