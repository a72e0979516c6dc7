// The store lists its trees outside the log, with the case of each and whether it has ended. Recovery, erasure and
// decisions about a case use that list, so it is verified against the log.

import { isOpeningInput, type Entry } from '../../contract/run/entry.js';
import { isTerminal, stateAfterEvent } from '../../contract/run/run-context.js';
import type { ReadableLedger, StoredEntry, TreeSummary } from '../readable-ledger.js';
import type { CheckedEntry } from './check-entry.js';
import type { LedgerFinding } from './ledger-problem.js';

export interface TreeListSource {
  readonly listed: Pick<ReadableLedger, 'trees' | 'treesOf'> & Partial<Pick<ReadableLedger, 'pending'>>;
  /** Whether the entries of a tree are archived: the store does not list such a tree. */
  readonly isArchived: (tree_id: string) => Promise<boolean>;
}

/** Maximum pending appends that one check reads: many times what may wait for the sequencer. */
const PENDING_MAX = 1_048_576;

/** A tree as read from the log. */
interface LoggedTree {
  readonly case_id: string | null;
  readonly log_index: number;
  /** Null if its entries do not determine it: the tree of a session. */
  ended: boolean | null;
}

export interface TreeFinding extends LedgerFinding {
  readonly tree_id: string;
}

/** Takes the entries of a log in their order. Memory grows with the number of trees. */
export class TreeCheck {
  readonly #source: TreeListSource;
  readonly #trees = new Map<string, LoggedTree>();
  /** Trees that were listed as ended before the log was read. */
  readonly #ended = new Set<string>();

  constructor(source: TreeListSource) {
    this.#source = source;
  }

  /**
   * Reads which trees have ended by now: a log that is read after this call contains their ends. The end of a tree with
   * pending appends may be among these: it is not in the log yet. @throws LedgerError
   */
  async begin(): Promise<void> {
    const { listed } = this.#source;
    for await (const { tree_id, ended } of listed.trees()) if (ended) this.#ended.add(tree_id);
    // In this order: what is integrated between the two reads is in the log that is read later.
    for (const { tree_id } of (await listed.pending?.(PENDING_MAX)) ?? []) this.#ended.delete(tree_id);
  }

  take({ tree_id, seq, log_index }: StoredEntry, { envelope, findings }: CheckedEntry): void {
    // Another check has already reported an invalid entry.
    if (findings.length > 0 || envelope === null) return;
    const { type, body } = envelope as Entry;
    if (seq === 0 && type === 'input' && isOpeningInput(body)) {
      this.#trees.set(tree_id, { case_id: body.case_id, log_index, ended: body.kind === 'open' ? false : null });
    }
    if (type !== 'audit_event' || body.run_id !== tree_id) return;
    const tree = this.#trees.get(tree_id);
    const state = stateAfterEvent(body);
    if (tree?.ended === false && state !== null && isTerminal(state)) tree.ended = true;
  }

  /**
   * Reports the differences between the list and the log, which had `from` entries when the reading began and `size`
   * when it ended. @throws LedgerError
   */
  async *finish(from: number, size: number): AsyncGenerator<TreeFinding> {
    // Read first: what has ended in the list of its case has ended in the whole list too.
    const ofCases = await this.#readCases();
    const listed = new Map<string, TreeSummary>();
    for await (const tree of this.#source.listed.trees()) {
      const { tree_id, log_index } = tree;
      listed.set(tree_id, tree);
      const isRead = log_index === null || log_index < from || log_index >= size || this.#trees.has(tree_id);
      if (!isRead) yield createTreeFinding(tree_id, `it does not begin at ${log_index}`);
    }
    for (const [tree_id, tree] of this.#trees) {
      const summary = listed.get(tree_id);
      if (summary === undefined) {
        if (!(await this.#source.isArchived(tree_id))) yield createTreeFinding(tree_id, 'it is not listed');
      } else if (summary.log_index !== tree.log_index)
        yield createTreeFinding(tree_id, `it begins at ${tree.log_index}`);
      else if (tree.ended === true && !summary.ended) yield createTreeFinding(tree_id, 'it has ended');
      else if (tree.ended === false && this.#ended.has(tree_id)) yield createTreeFinding(tree_id, 'it has not ended');
    }
    yield* this.#checkCases(ofCases, listed);
  }

  /** The trees of each case in the log, and those that the store lists for it. */
  async #readCases(): Promise<readonly ListedCase[]> {
    const cases = new Map<string, Set<string>>();
    for (const [tree_id, { case_id }] of this.#trees) {
      if (case_id === null) continue;
      cases.set(case_id, (cases.get(case_id) ?? new Set()).add(tree_id));
    }
    const found: ListedCase[] = [];
    for (const [case_id, tree_ids] of cases)
      found.push({ case_id, tree_ids, listed: await this.#source.listed.treesOf(case_id) });
    return found;
  }

  async *#checkCases(
    cases: readonly ListedCase[],
    whole: ReadonlyMap<string, TreeSummary>,
  ): AsyncGenerator<TreeFinding> {
    for (const { case_id, tree_ids, listed } of cases) {
      for (const summary of listed) {
        const { tree_id } = summary;
        // A tree that is not in the log yet was opened during the verification.
        const read = this.#trees.get(tree_id);
        if (read === undefined) continue;
        if (!tree_ids.delete(tree_id)) yield createTreeFinding(tree_id, `it is not of case ${case_id}`);
        else if (differs(summary, whole.get(tree_id), read))
          yield createTreeFinding(tree_id, `case ${case_id} lists another place or end`);
      }
      for (const tree_id of tree_ids) {
        if (!(await this.#source.isArchived(tree_id))) yield createTreeFinding(tree_id, `it is of case ${case_id}`);
      }
    }
  }
}

interface ListedCase {
  readonly case_id: string;
  readonly tree_ids: Set<string>;
  readonly listed: readonly TreeSummary[];
}

/** Whether the list of a case contradicts the log, although the whole list, which was read after it, does not. */
function differs({ ended, log_index }: TreeSummary, whole: TreeSummary | undefined, read: LoggedTree): boolean {
  if (whole === undefined || whole.log_index !== read.log_index || read.ended === null) return false;
  if (log_index !== null && log_index !== read.log_index) return true;
  return ended ? !whole.ended && !read.ended : whole.ended && read.ended;
}

const createTreeFinding = (tree_id: string, difference: string): TreeFinding => ({
  tree_id,
  rule: 'tree.listed',
  message: `the store's list of trees does not match the log for ${tree_id}: ${difference}`,
});
