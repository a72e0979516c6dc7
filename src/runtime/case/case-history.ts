// Reads all entries of one case, from the run trees that were opened for it.
//
//   C1. Each tree is a hash chain, which is verified while it is read. The first pass records its length and last hash.
//       Every later pass returns the same entries, or fails.
//   C2. `readConfirmed` reads the whole log once, in addition to the trees. It checks that the root matches the head,
//       that each entry of the case has the log index that its tree records, and that the log has no other entry of
//       the case. An export reads the case this way first.
//   C3. A promotion, and a decision about an export, do not read the whole log. They compare the end of each tree with
//       what the engine or the run records know of it, so they detect a tree that lost its last entries.

import {
  loadFeaturesNamedIn,
  missingFeature,
  missingFeatureError,
} from '../../core/contract/run/feature-vocabulary.js';
import { isOpeningInput, type Entry, type EntryType, entryTypes } from '../../core/contract/run/entry.js';
import { LedgerError } from '../../core/errors.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../core/ledger/proof/merkle.js';
import type { LedgerStore, LogHead, StoredEntry, TreeSummary } from '../../engine/ports/ledger/ledger-store.js';
import { mergeTrees } from './merge-trees.js';
import { tamperedEntryError, tamperedTreeError, type TreeCursor, type TreeTip } from './tree-cursor.js';
import { isJsonObject, type Json, parseOwnJson, quote } from '../../core/contract/json.js';
import { isEntryBody } from '../../core/contract/validators.js';

/** Entries per yielded group: a promise per entry would need far more memory. */
const ENTRIES_AT_ONCE = 64;

/** One case, up to the log size at `head`. Entries that are committed later appear in no pass. */
export interface CaseSlice {
  readonly case_id: string;
  readonly head: LogHead;
}

export interface CaseEntry {
  readonly log_index: number;
  readonly entry: Entry;
  /** The entry as it is stored. */
  readonly text: string;
}

/** Observes a pass over the whole log: every leaf in order, and whether it is an entry of the case. */
export interface LeafObserver {
  begin(head: LogHead): void;
  push(leaf_hash: string, isOwn: boolean): void;
}

/** What the engine knows of a tree; null for an unknown tree. */
export type TreeLookup = (tree_id: string) => Promise<(TreeTip & { readonly ended: boolean }) | null>;

type Entries = AsyncGenerator<readonly CaseEntry[]>;

export class CaseHistory {
  readonly slice: CaseSlice;
  readonly #store: LedgerStore;
  readonly #lookUpTree: TreeLookup | null;
  readonly #tips = new Map<string, TreeTip>();
  #trees: Promise<readonly TreeSummary[]> | null = null;

  /** @param lookUpTree returns the known end of a tree (C3); null if `readConfirmed` follows (C2) */
  constructor(store: LedgerStore, slice: CaseSlice, lookUpTree: TreeLookup | null = null) {
    this.#store = store;
    this.slice = slice;
    this.#lookUpTree = lookUpTree;
  }

  /**
   * The entries of these types of all trees of the case, in log order, in groups. Memory grows with the number of
   * trees.
   * @throws LedgerError LEDGER_ARCHIVED if trees of the case are archived; LEDGER_TAMPERED
   */
  async *entries(types: readonly EntryType[]): Entries {
    let [read, found]: [number, CaseEntry[]] = [0, []];
    for await (const stored of this.#mergeTrees()) {
      const entry = this.#selectEntry(stored, types);
      if (entry !== null) found.push(entry);
      if ((read += 1) % ENTRIES_AT_ONCE !== 0) continue;
      yield found;
      found = [];
    }
    yield found;
  }

  /**
   * Like `entries`. After the last entry it has verified that the log has the root of the head, and no other entry of
   * the case.
   * @throws LedgerError like `entries`
   */
  async *readConfirmed(types: readonly EntryType[], observer: LeafObserver | null = null): Entries {
    const { head } = this.slice;
    if (head.size === 0) return;
    const caseEntries = this.#mergeTrees();
    const tree_ids = new Set((await this.#summaries()).map(({ tree_id }) => tree_id));
    let [log, leaves, found]: [LogHead, string[], CaseEntry[]] = [await this.#archivedHead(), [], []];
    observer?.begin(log);
    try {
      let next = await caseEntries.next();
      for await (const stored of this.#store.log(log.size)) {
        const log_index = log.size + leaves.length;
        const leaf = leafHash(stored.text);
        if (stored.log_index !== log_index || !hasMatchingEnvelope(stored)) throw tamperedEntryError(stored.log_index);
        leaves.push(leaf);
        const isOwn = next.done !== true && next.value.log_index === log_index;
        observer?.push(leaf, isOwn);
        if (next.done !== true && isOwn) {
          if (next.value.leaf_hash !== leaf) throw tamperedEntryError(log_index);
          const entry = this.#selectEntry(next.value, types);
          if (entry !== null) found.push(entry);
          next = await caseEntries.next();
        } else if (tree_ids.has(stored.tree_id) || this.#isCaseOpening(stored)) throw tamperedEntryError(log_index);
        const isLast = log_index + 1 === head.size;
        if (leaves.length < ENTRIES_AT_ONCE && !isLast) continue;
        log = extendHead(log, leaves);
        yield found;
        [leaves, found] = [[], []];
        if (isLast) break;
      }
      if (log.size !== head.size || log.root !== head.root || next.done !== true) throw tamperedEntryError(head.size);
    } finally {
      await caseEntries.return(undefined);
    }
  }

  async *#mergeTrees(): AsyncGenerator<StoredEntry> {
    const { size } = this.slice.head;
    if (size === 0) return;
    const trees = await this.#summaries();
    const ended = (tree: TreeSummary, cursor: TreeCursor): Promise<void> => this.#compare(tree, cursor);
    for await (const stored of mergeTrees(this.#store, trees, { size, onTreeEnd: ended })) {
      await loadFeaturesNamedIn(stored.text);
      yield stored;
    }
  }

  #summaries(): Promise<readonly TreeSummary[]> {
    this.#trees ??= this.#listTrees();
    return this.#trees;
  }

  async #listTrees(): Promise<readonly TreeSummary[]> {
    const { case_id } = this.slice;
    if (await this.#store.archives.hasCase(case_id)) throw archivedCaseError(case_id);
    return this.#store.treesOf(case_id);
  }

  async #archivedHead(): Promise<LogHead> {
    return (await this.#store.archives.parts()).at(-1) ?? EMPTY_HEAD;
  }

  #selectEntry(stored: StoredEntry, types: readonly EntryType[]): CaseEntry | null {
    const { seq, type, log_index } = stored;
    if (seq === 0 && !this.#isCaseOpening(stored)) throw tamperedEntryError(log_index);
    return types.some((wantedType) => wantedType === type)
      ? { log_index, entry: parseCaseEntry(stored), text: stored.text }
      : null;
  }

  /** Whether an entry opens a tree of the case. */
  #isCaseOpening(stored: StoredEntry): boolean {
    if (stored.seq !== 0) return false;
    const { type, body } = parseCaseEntry(stored);
    return type === 'input' && isOpeningInput(body) && body.case_id === this.slice.case_id;
  }

  /** C1, C3: compares the end of the tree with its end in the first pass, or with its known end. */
  async #compare(tree: TreeSummary, cursor: TreeCursor): Promise<void> {
    const { tip } = cursor;
    const before = this.#tips.get(tree.tree_id);
    if (before !== undefined && (before.seq !== tip.seq || before.prev !== tip.prev))
      throw tamperedTreeError(tree.tree_id);
    if (before === undefined && this.#lookUpTree !== null) await this.#compareEnd(tree, cursor, this.#lookUpTree);
    this.#tips.set(tree.tree_id, tip);
  }

  async #compareEnd({ tree_id, ended }: TreeSummary, cursor: TreeCursor, lookUpTree: TreeLookup): Promise<void> {
    const recorded = ended ? await this.#store.runRecords.recorded(tree_id) : null;
    if (recorded !== null) {
      await cursor.verifyUntil(recorded);
      return;
    }
    const tree = await lookUpTree(tree_id);
    if (tree === null || (ended && !tree.ended)) throw tamperedTreeError(tree_id);
    const { seq, prev } = await cursor.verifyUntil(tree.seq);
    if (seq !== tree.seq || prev !== tree.prev) throw tamperedTreeError(tree_id);
  }
}

/** The remaining trees do not show the whole case. */
const archivedCaseError = (case_id: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_ARCHIVED',
    message: `run trees of case ${case_id} are in an archive: it can be neither exported nor promoted from`,
  });

// Checks a stored entry, as far as one entry can be verified alone.

/**
 * Whether the text ends with the entry's place. In canonical JSON, `body`, which contains untrusted text, comes before.
 */
const hasMatchingEnvelope = ({ text, seq, tree_id, type }: StoredEntry): boolean =>
  text.endsWith(`,"seq":${seq},"tree_id":${quote(tree_id)},"type":${quote(type)}}`);

/**
 * Parses an entry. The caller has verified the place at the end of its text.
 * @throws LedgerError LEDGER_UNSUPPORTED if its feature is not installed; LEDGER_TAMPERED if it does not match the
 * schema of its type, or is an event of another place
 */
function parseCaseEntry({ text, type, tree_id, seq, log_index }: StoredEntry): Entry {
  const entry = parseJson(text);
  const missing = isJsonObject(entry) ? missingFeature(entry['body']) : null;
  if (missing !== null) throw missingFeatureError(missing);
  if (!isJsonObject(entry) || !isEntryType(type) || !isEntryBody(type, entry['body']))
    throw tamperedEntryError(log_index);
  const { event_id, sequence } = entry['body'] as { readonly event_id?: string; readonly sequence?: number };
  if (type === 'audit_event' && (event_id !== `${tree_id}:${seq}` || sequence !== seq))
    throw tamperedEntryError(log_index);
  // The body was validated against its type above.
  return entry as unknown as Entry;
}

const isEntryType = (type: string): type is EntryType => (entryTypes() as readonly string[]).includes(type);

function parseJson(text: string): Json | null {
  try {
    return parseOwnJson(text) as Json;
  } catch {
    return null;
  }
}
