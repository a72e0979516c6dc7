import { systemPace } from '../../system/system-pace.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import type { Entry } from '../../core/contract/run/entry.js';
import type { RunRecord } from '../../core/contract/run/run-record.js';
import { LedgerError } from '../../core/errors.js';
import type { HistoryCache } from '../../core/ledger/history-cache.js';
import type {
  ExternalHead,
  CursorOptions,
  EntryPlace,
  ExternalHeadStore,
  LedgerStore,
  LogHead,
  StoredEntry,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { OverlaySource } from '../../engine/ports/policy-sources.js';
import type { Pace, ReadControl } from '../../engine/ports/pace.js';
import { parseStoredRecord } from '../../core/ledger/verification/check-records.js';
import { problemOf, WHOLE_LOG, type LedgerProblem } from '../../core/ledger/verification/ledger-problem.js';
import { integratedLog, type IntegratedLog } from './integrated-log.js';
import { EMPTY_HEAD } from '../../core/ledger/proof/merkle.js';
import { refusedVerdict, type LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
import { verifyLedger } from '../../core/ledger/verification/verify-ledger.js';
import { ReplayCheck } from '../../kernel/replay/check-replay.js';
import { replay, type ReplayReport } from '../../kernel/replay/replay.js';
import { stateAt } from '../../kernel/replay/state-at.js';
import type { LedgerState } from '../../kernel/replay/ledger-state.js';
import { RunRecords } from './run-records.js';
import { PendingApprovals, type Approver, type SourcedApproval, type PendingApproval } from './pending-approvals.js';
import { OBSERVERS } from '../content/audience.js';
import { ContentReader } from '../content/content-reader.js';
import { checkArchiveChain, sortArchives, joinLogs, type OpenedArchive } from './joined-log.js';
import { RunTreeFold, RUNS_CACHED_MAX, type RunTree } from './run-tree.js';
import { parseStoredEntry, isRunEntry } from './stored-entry.js';
import { TreeFolds } from './tree-folds.js';

export type { RunTree } from './run-tree.js';
export type { Approver, SourcedApproval, PendingApproval } from './pending-approvals.js';
export type { Settlement } from './run-tree.js';

export interface ReaderOptions {
  /** Cache of replay points for `stateAt`. */
  readonly history?: HistoryCache | null;
  /** Divides long work on the ledger. Default: by the machine's clock. */
  readonly pace?: Pace;
  /** The emergency overlay in force: a suspended person sees no withheld request. Default: none. */
  readonly overlay?: OverlaySource;
}

/** Where a proposal is in its tree, and the hash of its payload. */
export interface RecordedProposal {
  readonly seq: number;
  readonly sha256: string;
}

/** A ledger with all its content. */
export interface FoldSource extends IntegratedLog, Pick<LedgerStore, 'archives' | 'trees' | 'head'> {}

/** Everything that can be read from a ledger. It writes nothing and needs no lock. */
export class LedgerReader {
  readonly #store: LedgerStore;
  readonly #log: IntegratedLog;
  readonly #externalHeadStore: ExternalHeadStore;
  readonly #history: HistoryCache | null;
  readonly #trees: TreeFolds<RunTree>;
  readonly #approvals: PendingApprovals;
  readonly #content: ContentReader;
  /** Divides long reads. */
  readonly pace: Pace;

  constructor(
    store: LedgerStore,
    externalHeadStore: ExternalHeadStore,
    { history, pace = systemPace(), overlay }: ReaderOptions = {},
  ) {
    this.#store = store;
    this.#log = integratedLog(store);
    this.#externalHeadStore = externalHeadStore;
    this.#history = history ?? null;
    this.pace = pace;
    this.#trees = new TreeFolds({ store, pace }, (tree_id) => new RunTreeFold(tree_id), RUNS_CACHED_MAX);
    this.#approvals = new PendingApprovals({ store, pace }, () => overlay?.current() ?? null);
    this.#content = new ContentReader(store, pace);
  }

  /**
   * The run trees in the order in which they were opened; only the last `last` of those that match.
   * @param matches default: every tree
   */
  async *trees(last = Infinity, matches: (tree: RunTree) => boolean = () => true): AsyncIterable<RunTree> {
    const ids: string[] = [];
    for await (const { tree_id } of this.#store.trees()) ids.push(tree_id);
    if (last === Infinity) {
      for (const tree_id of ids) {
        const tree = await this.#trees.get(tree_id);
        if (matches(tree)) yield tree;
      }
      return;
    }
    // From the end, so that a long ledger is not folded for the few trees that are wanted.
    const found: string[] = [];
    while (found.length < last) {
      const tree_id = ids.pop();
      if (tree_id === undefined) break;
      if (matches(await this.#trees.get(tree_id))) found.push(tree_id);
    }
    for (const tree_id of found.toReversed()) yield await this.#trees.get(tree_id);
  }

  /**
   * The run trees that were opened after entry `log_index` of the log, in order, each with the index of its first
   * entry.
   */
  async *treesAfter(log_index: number, control?: ReadControl): AsyncIterable<RunTree & { readonly log_index: number }> {
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { tree_id, log_index: firstIndex } of this.#store.trees({ from: log_index + 1, ...options })) {
      if (firstIndex !== null) yield { ...(await this.#trees.get(tree_id, control)), log_index: firstIndex };
    }
  }

  /** The number of entries. */
  async size(): Promise<number> {
    return (await this.#store.head()).size;
  }

  /** The SHA-256 of what was committed to a tree under an id that a caller chose, or null. */
  async inputContent(tree_id: string, input_id: string): Promise<string | null> {
    return (await this.recordedProposal(tree_id, input_id))?.sha256 ?? null;
  }

  /** Those of the given inputs that were committed, in their order, by one query. */
  async committed<Key extends { readonly tree_id: string; readonly input_id: string }>(
    keys: readonly Key[],
  ): Promise<readonly Key[]> {
    const marks = await this.#store.marks(keys);
    return keys.filter((_key, index) => marks[index] != null);
  }

  /** The seq and the SHA-256 of the proposal that was committed to a tree under an id of its caller, or null. */
  async recordedProposal(tree_id: string, input_id: string): Promise<RecordedProposal | null> {
    const [mark] = await this.#store.marks([{ tree_id, input_id }]);
    if (mark == null) return null;
    for await (const stored of this.#store.tree(tree_id, mark.seq)) {
      const { type, body } = parseStoredEntry(stored);
      const isProposal = type === 'input' && body.kind === 'proposal';
      return isProposal ? { seq: mark.seq, sha256: body.payload.hash_sha256 } : null;
    }
    return null;
  }

  /** The runs of a tree; none for a tree that does not exist. */
  runTree(tree_id: string): Promise<RunTree> {
    return this.#trees.get(tree_id);
  }

  /** The tree that a run belongs to, or null. */
  async treeOf(run_id: string, control?: ReadControl): Promise<RunTree | null> {
    const tree = await this.#trees.get(rootRunIdOf(run_id), control);
    return tree.runs.some((run) => run.run_id === run_id) ? tree : null;
  }

  /** The record of a run: the stored one with later entries applied, otherwise folded. */
  async run(run_id: string, control?: ReadControl): Promise<RunRecord | null> {
    const storedRecord = await this.#loadRecord(run_id).catch(nullIfTampered);
    if (storedRecord !== null) return storedRecord;
    return (await this.treeOf(run_id, control))?.runs.find((run) => run.run_id === run_id) ?? null;
  }

  /**
   * Every pending approval that has not expired by `now`, with the exact request (D7); a hash if a lane withholds it.
   * With `by`, the request as that person may see it: the caller shows only hashes of it, or records the reading.
   */
  approvals(now: string, by: Approver | null = null, control?: ReadControl): AsyncIterable<PendingApproval> {
    return this.#approvals.list(now, by, control);
  }

  /** The number of pending approvals. */
  countApprovals(now: string): Promise<number> {
    return this.#approvals.count(now);
  }

  /** One pending approval and the entry that contains its request; null if it is no longer pending. `by` as above. */
  approval(
    { run_id, digest }: Pick<PendingApproval, 'run_id' | 'digest'>,
    now: string,
    by: Approver | null = null,
  ): Promise<SourcedApproval | null> {
    return this.#approvals.find({ tree_id: rootRunIdOf(run_id), run_id, digest }, now, by);
  }

  /** The entries of a tree in order; if `run_id` is not the root, only those that name that run. */
  async *entries(run_id: string): AsyncIterable<Entry> {
    const tree_id = rootRunIdOf(run_id);
    for await (const stored of this.#store.tree(tree_id)) {
      const entry = parseStoredEntry(stored);
      if (run_id === tree_id || ('run_id' in entry.body && entry.body.run_id === run_id)) yield entry;
    }
  }

  /** The entries in log order, from `from_index` on; by default from the first one. */
  log(from_index?: number, options?: CursorOptions): AsyncIterable<StoredEntry> {
    return this.#store.log(from_index, options);
  }

  /** A tree's entries that are integrated into the log. */
  tree(tree_id: string, fromSeq?: number, options?: CursorOptions): AsyncIterable<StoredEntry> {
    return this.#log.tree(tree_id, fromSeq, options);
  }

  /** The size and the root hash of the log in the store. */
  head(): Promise<LogHead> {
    return this.#store.head();
  }

  /** Where the log begins: at its first entry, or after the archived part. */
  async begin(): Promise<LogHead> {
    return (await this.#store.archives.parts()).at(-1) ?? EMPTY_HEAD;
  }

  /** The latest head of the head file, signed if heads are. @throws LedgerError LEDGER_TAMPERED */
  anchored(): Promise<ExternalHead | null> {
    return this.#externalHeadStore.read();
  }

  /** Every tree that is not archived, by its first entry. */
  summaries(): AsyncIterable<TreeSummary> {
    return this.#store.trees();
  }

  /** The id of every tree, in the order of their first entries in the log. */
  async *openings(): AsyncIterable<string> {
    for await (const { tree_id } of this.#store.trees()) {
      for await (const { text } of this.#store.tree(tree_id)) {
        yield text;
        break;
      }
    }
  }

  /** A policy or a machine definition, which belong to no case; null if the ledger has none with this hash. */
  systemArtifact(sha256: string): Promise<Uint8Array | null> {
    return this.#store.artifact(null, sha256);
  }

  /** The content of an entry as everyone may see it: the hash if a lane withholds it (decision 0035). */
  artifactsOf(firstIndex: EntryPlace): Promise<readonly StoredArtifact[]> {
    return this.#content.read(firstIndex, OBSERVERS);
  }

  /**
   * The same log with all content, for code that folds it and passes on only results, never content.
   * `test/content-access.test.ts` lists that code.
   */
  get folded(): FoldSource {
    const { archives } = this.#store;
    return { ...this.#log, archives, trees: () => this.#store.trees(), head: () => this.#store.head() };
  }

  /**
   * Compares all entries, artifacts, heads and stored records with each other, and with the entries that S4 §6
   * requires; see `ledger verify`. Without `replay` it does not run the machines, which is faster.
   */
  async verify({
    replay: shouldReplay = true,
    archives = [],
  }: {
    readonly replay?: boolean;
    /** Opened archives of this ledger, to verify as well. */
    readonly archives?: readonly OpenedArchive[];
  } = {}): Promise<LedgerVerdict> {
    const store = this.#store;
    const parts = await store.archives.parts();
    const chain = sortArchives(archives);
    const chainProblems: LedgerProblem[] = [];
    for await (const finding of checkArchiveChain(chain, parts))
      chainProblems.push(problemOf({ place: WHOLE_LOG, finding }));
    if (chainProblems.length > 0) return refusedVerdict(chainProblems);
    const source = joinLogs(chain, this.#log, parts.at(-1) ?? EMPTY_HEAD);
    return verifyLedger({
      ...source,
      head: () => store.head(),
      externalHead: await this.#externalHeadStore.read(),
      marks: store,
      trees: { listed: store, isArchived: async (id) => (await store.archives.tree(id)) !== null },
      records: {
        table: store.runRecords,
        newFold: () => new RunRecords(),
        isAfter: (id, size) => isAfter(store, id, size),
        ...(source.begin.size > 0 ? { isArchived: async (id) => (await store.archives.tree(id)) !== null } : {}),
      },
      archives: { parts, openNote: this.#externalHeadStore.openNote ?? null },
      ...(this.#externalHeadStore.keys === undefined ? {} : { keys: this.#externalHeadStore.keys }),
      ...(shouldReplay ? { replay: new ReplayCheck(source) } : {}),
    });
  }

  /** Folds the ledger, or one run tree, through the machines. The whole ledger must have the size of its heads. */
  async replay(run_id?: string): Promise<ReplayReport> {
    if (run_id !== undefined) return replay(this.#log, rootRunIdOf(run_id));
    const size = async (): Promise<number> =>
      Math.max((await this.#store.head()).size, (await this.#externalHeadStore.read())?.size ?? 0);
    return replay({ ...this.#log, size, first: (await this.begin()).size });
  }

  /** Every run and session at an entry of the log; with `run_id`, those of its tree at an entry of that tree. */
  stateAt({ until, run_id }: { readonly until: number; readonly run_id?: string }): Promise<LedgerState> {
    const tree = run_id === undefined ? {} : { tree_id: rootRunIdOf(run_id) };
    return stateAt({ ...this.#log, archives: this.#store.archives }, this.#history, { until, ...tree });
  }

  /** @returns null if no valid record is stored */
  async #loadRecord(run_id: string): Promise<RunRecord | null> {
    const { runRecords } = this.#store;
    const tree_id = rootRunIdOf(run_id);
    const seq = (await runRecords.recorded(tree_id)) ?? 0;
    const record = seq === 0 ? null : parseStoredRecord(await runRecords.load(tree_id, run_id));
    if (record === null) return null;
    const entries = await this.#store.archives.tree(tree_id);
    // If the tree has more entries than were recorded, only the archive contains them.
    if (entries === seq) return record;
    const records = new RunRecords();
    records.resume(record);
    for await (const stored of this.#store.tree(tree_id, seq))
      if (isRunEntry(stored)) records.fold(parseStoredEntry(stored));
    return records.get(run_id);
  }
}

/** An invalid stored record does not prevent folding the entries. */
function nullIfTampered(error: unknown): null {
  if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return null;
  throw error;
}

/** Whether the log got an entry of the tree after it had this size, or will. An unreadable tree has none. */
async function isAfter(store: Pick<LedgerStore, 'tree'>, tree_id: string, size: number): Promise<boolean> {
  try {
    for await (const { log_index } of store.tree(tree_id)) if (log_index === null || log_index >= size) return true;
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
  return false;
}
