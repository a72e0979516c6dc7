// Finds where a log can be divided: the trees below the boundary have ended, and lie below it completely.

import { isOpeningInput, type Entry } from '../../core/contract/run/entry.js';
import { LedgerError } from '../../core/errors.js';
import { EMPTY_HEAD, extendHead } from '../../core/ledger/proof/merkle.js';
import type { LedgerStore, LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { RunRecords } from '../../runtime/ledger/run-records.js';
import { parseStoredEntry, isRunEntry } from '../../runtime/ledger/stored-entry.js';
import { UnknownOutcomes } from '../../runtime/ledger/run-tree.js';

/** Leaves hashed per pass. */
const LEAVES_AT_ONCE = 1_024;

/** A tree that prevents a higher boundary, and why. */
export interface BoundaryBlocker {
  readonly tree_id: string;
  /** The log index of its first entry. */
  readonly first: number;
  readonly why: 'lives' | 'goes on' | 'unrecorded' | 'unknown outcome';
}

export interface ArchiveBoundary {
  /** The log below the boundary. */
  readonly head: LogHead;
  readonly trees: readonly { readonly tree_id: string; readonly entries: number }[];
  readonly cases: readonly string[];
  /** The tree that keeps the boundary below the requested size; null if none does. */
  readonly held: BoundaryBlocker | null;
}

/** The first and the last entry of a tree in the log. */
interface TreeSpan {
  readonly tree_id: string;
  readonly first: number;
  last: number;
  entries: number;
  case_id: string | null;
  why: BoundaryBlocker['why'] | null;
  hasUnknownResult: boolean;
}

/**
 * The greatest size up to `limit` that divides no tree, and below which all trees have ended and are recorded, with
 * known outcomes. Reads the log twice. Memory grows with the number of trees.
 * @throws LedgerError LEDGER_TAMPERED if the log does not match its head
 */
export async function findBoundary(store: LedgerStore, limit: number): Promise<ArchiveBoundary> {
  const begin: LogHead = (await store.archives.parts()).at(-1) ?? EMPTY_HEAD;
  const head = await store.head();
  const spans = await spansOf(store, begin.size);
  await findBlockers(store, spans);
  const size = findDivision([...spans.values()], begin.size, head.size, limit);
  const below = [...spans.values()].filter(({ first }) => first < size);
  return {
    head: await headAt(store, begin, head, size),
    trees: below.map(({ tree_id, entries }) => ({ tree_id, entries })),
    cases: [...new Set(below.flatMap(({ case_id }) => case_id ?? []))],
    held: findBlocker([...spans.values()], size, Math.min(limit, head.size)),
  };
}

async function spansOf(store: LedgerStore, begin: number): Promise<Map<string, TreeSpan>> {
  const spans = new Map<string, TreeSpan>();
  for await (const stored of store.log(begin)) {
    const { tree_id, log_index: first } = stored;
    const known = spans.get(tree_id);
    const fresh = { tree_id, first, last: first, entries: 0, case_id: null, why: null, hasUnknownResult: false };
    const span: TreeSpan = known ?? fresh;
    span.last = first;
    span.entries += 1;
    if (known === undefined) {
      span.case_id = caseOf(stored);
      spans.set(tree_id, span);
    }
    if (stored.type === 'input' && stored.text.includes('"status":"unknown"')) span.hasUnknownResult = true;
  }
  return spans;
}

function caseOf(stored: StoredEntry): string | null {
  const entry = parseStoredEntry(stored);
  return entry.type === 'input' && isOpeningInput(entry.body) ? entry.body.case_id : null;
}

/** Notes for each tree why it cannot be archived, regardless of its age. */
async function findBlockers(store: LedgerStore, spans: ReadonlyMap<string, TreeSpan>): Promise<void> {
  const note = (tree_id: string, why: BoundaryBlocker['why']): void => {
    const span = spans.get(tree_id);
    if (span !== undefined) span.why = why;
  };
  for (const span of spans.values())
    if (span.hasUnknownResult && (await hasUnknownOutcome(store, span.tree_id))) span.why = 'unknown outcome';
  for await (const { tree_id } of store.runRecords.unrecorded()) note(tree_id, 'unrecorded');
  for await (const { tree_id, ended } of store.trees()) if (!ended) note(tree_id, 'lives');
}

/** Whether a person still has to settle an effect of this tree (D8). Its tree must stay to accept the settlement. */
async function hasUnknownOutcome(store: LedgerStore, tree_id: string): Promise<boolean> {
  const records = new RunRecords();
  const unknown = new UnknownOutcomes();
  for await (const stored of store.tree(tree_id)) {
    if (stored.type !== 'input' && !isRunEntry(stored)) continue;
    const entry: Entry = parseStoredEntry(stored);
    unknown.fold(entry, (run_id) => records.statusOf(run_id));
    records.fold(entry);
  }
  return [...unknown.all.values()].some((settlement) => settlement === null);
}

/** A boundary lies only before the first entry of a tree, or at the end. */
function findDivision(spans: readonly TreeSpan[], begin: number, end: number, limit: number): number {
  let size = begin;
  let reach = begin;
  for (const span of spans) {
    if (span.first > limit) break;
    if (reach <= span.first) size = span.first;
    reach = Math.max(reach, span.why === null ? span.last + 1 : Infinity);
  }
  return reach <= end && end <= limit && spans.every(({ why, last }) => why === null && last < end) ? end : size;
}

/** The blocking tree to report: a running one rather than one that merely extends beyond the requested size. */
function findBlocker(spans: readonly TreeSpan[], size: number, limit: number): BoundaryBlocker | null {
  if (size >= limit) return null;
  const crossing = spans.filter(({ first, last, why }) => first < limit && (why !== null || last >= limit));
  const blocker = crossing.find(({ why }) => why !== null) ?? crossing[0];
  return blocker === undefined
    ? null
    : { tree_id: blocker.tree_id, first: blocker.first, why: blocker.why ?? 'goes on' };
}

/** The head of the log at `size`. The rest of the log is hashed too, and must lead to the store's head. */
async function headAt(store: LedgerStore, begin: LogHead, head: LogHead, size: number): Promise<LogHead> {
  let reached = begin;
  let at = size === begin.size ? begin : null;
  let leaves: string[] = [];
  const extendReached = (): void => {
    reached = extendHead(reached, leaves);
    leaves = [];
  };
  for await (const { leaf_hash } of store.log(begin.size)) {
    leaves.push(leaf_hash);
    if (leaves.length === LEAVES_AT_ONCE || reached.size + leaves.length === size) extendReached();
    if (reached.size === size) at = reached;
  }
  extendReached();
  if (at !== null && reached.size === head.size && reached.root === head.root) return at;
  throw new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: 'the ledger does not match its head: run `turnpike ledger verify`',
  });
}
