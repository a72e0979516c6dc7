// Verification trusts nothing that a store says: it reads the whole log once, computes everything again from texts and
// contents, and compares. What it finds it names by entry, and it goes on after a finding, up to a limit.

import { NO_PREV } from '../contract/entry.js';
import { LedgerError } from '../errors.js';
import type { LedgerStore, LogHead, StoredEntry } from '../ports/ledger-store.js';
import { artifactFindings } from './artifact-refs.js';
import { checkEntry, type CheckedEntry } from './check-entry.js';
import { MarkCheck, type MarkSource } from './check-marks.js';
import { RecordCheck, type RecordSource } from './check-records.js';
import type { Finding, LedgerProblem } from './ledger-problem.js';
import { appendLeaf, rootOf } from './merkle.js';

export const PROBLEMS_MAX = 100;

/** A ledger as verification reads it, and the head that was kept outside of it (null where there is none). */
export interface LedgerSource extends Pick<LedgerStore, 'log' | 'artifactsOf' | 'head'> {
  /** What is remembered beside the log; where there is nobody to ask, marks are not looked at. */
  readonly marks?: MarkSource;
  /** The run records that are written beside the log; where there are none to ask, they are not looked at. */
  readonly records?: RecordSource;
  readonly anchor: Pick<LogHead, 'size' | 'root'> | null;
}

export type LedgerVerdict =
  | { readonly ok: true; readonly entries: number; readonly trees: number; readonly root: string }
  | { readonly ok: false; readonly problems: readonly LedgerProblem[] };

const WHOLE_LOG = { log_index: null, tree_id: null, seq: null } as const;

/**
 * Reads the whole ledger and decides whether it is what was once committed (S4-86, D15).
 *
 * An entry is checked against its own text and hash, the entry before it in its tree, the schema of its body and the
 * content that it brought; an input must have brought all content that it refers to, and a step has the marks by which
 * its ids are remembered. Run records that are written are what the entries say. The log is checked against the store's
 * head and the anchor. Entries that are committed meanwhile do no harm. Memory grows with the number of trees.
 *
 * @returns the problems in order of the log, at most `problems_max`: then the rest was not read
 * @throws LedgerError LEDGER_UNAVAILABLE if it could not be read, which says nothing about what it holds
 */
export async function verifyLedger(
  source: LedgerSource,
  { problems_max = PROBLEMS_MAX }: { readonly problems_max?: number } = {},
): Promise<LedgerVerdict> {
  const problems: LedgerProblem[] = [];
  const report = (place: Omit<LedgerProblem, keyof Finding>, findings: Iterable<Finding>): void => {
    for (const finding of findings) problems.push({ ...place, ...finding });
  };
  const trees = new Map<string, TreeEnd>();
  const marks = source.marks === undefined ? null : new MarkCheck(source.marks);
  const records = source.records === undefined ? null : new RecordCheck(source.records);
  let log: Log = { size: 0, frontier: [] };
  let next = 0;
  try {
    // Read before the log, so that what is committed meanwhile comes after it.
    const head = await source.head();
    if (records !== null) report(WHOLE_LOG, await records.begin());
    report(WHOLE_LOG, headFindings(log, head, source.anchor));
    for await (const stored of source.log()) {
      const { log_index, tree_id, seq } = stored;
      const checked = checkEntry(stored);
      report({ ...WHOLE_LOG, log_index: next }, gapFindings(next, log_index));
      report({ log_index, tree_id, seq }, checked.findings);
      report({ log_index, tree_id, seq }, treeFindings(trees, stored, checked));
      report({ log_index, tree_id, seq }, await contentFindings(source, log_index, checked));
      if (marks !== null) report({ log_index, tree_id, seq }, await marks.take(stored, checked));
      if (records !== null) report({ log_index, tree_id, seq }, await records.take(stored, checked));
      log = { size: log.size + 1, frontier: appendLeaf(log.frontier, log.size, checked.leaf_hash) };
      next = log_index + 1;
      report(WHOLE_LOG, headFindings(log, head, source.anchor));
      if (problems.length >= problems_max) return { ok: false, problems: problems.slice(0, problems_max) };
    }
    report(WHOLE_LOG, await endFindings(log, head, source));
    for (const { tree_id, ...finding } of records?.finish() ?? []) report({ ...WHOLE_LOG, tree_id }, [finding]);
  } catch (error) {
    report({ ...WHOLE_LOG, log_index: next }, [{ rule: 'log.unreadable', message: tamperingOf(error) }]);
  }
  return problems.length > 0
    ? { ok: false, problems: problems.slice(0, problems_max) }
    : { ok: true, entries: log.size, trees: trees.size, root: rootOf(log.frontier) };
}

/** The log as far as it was read, computed from the texts. */
type Log = Pick<LogHead, 'size' | 'frontier'>;

/** Where the last entry of a tree stood, and its hash: as computed, and as stored. */
interface TreeEnd {
  readonly seq: number;
  readonly hashes: readonly [computed: string, stored: string];
}

function* gapFindings(expected: number, log_index: number): Iterable<Finding> {
  if (log_index !== expected) {
    yield { rule: 'log.gap', message: `entry ${expected} of the log is missing: entry ${log_index} comes next` };
  }
}

/** Checks an entry against the one before it in its tree, and remembers it as the tree's last. */
function* treeFindings(
  trees: Map<string, TreeEnd>,
  stored: StoredEntry,
  { envelope, leaf_hash }: CheckedEntry,
): Iterable<Finding> {
  // Of a text that was changed and columns that were not, the columns tell the place, and the other way round: so one
  // changed entry is not reported as a broken tree.
  const { tree_id, seq } = envelope !== null && leaf_hash === stored.leaf_hash ? envelope : stored;
  const last = trees.get(tree_id);
  trees.set(tree_id, { seq, hashes: [leaf_hash, stored.leaf_hash] });
  const expected = last === undefined ? 0 : last.seq + 1;
  if (seq !== expected) {
    yield { rule: 'tree.seq', message: `seq ${expected} of ${tree_id} is missing: seq ${seq} comes next` };
  } else if (envelope !== null && !(last?.hashes ?? [NO_PREV]).includes(envelope.prev)) {
    const message = 'prev is not the leaf hash of the entry before it in the tree: one of the two was changed';
    yield { rule: 'tree.prev', message };
  }
}

async function contentFindings(
  source: LedgerSource,
  log_index: number,
  { envelope }: CheckedEntry,
): Promise<readonly Finding[]> {
  if (envelope === null) return [];
  try {
    return artifactFindings(envelope.type, envelope.body, await source.artifactsOf(log_index));
  } catch (error) {
    return [{ rule: 'artifact.unreadable', message: tamperingOf(error) }];
  }
}

/** Compares the log with those of the two heads that speak of just this size. */
function* headFindings({ size, frontier }: Log, head: LogHead, anchor: LedgerSource['anchor']): Iterable<Finding> {
  if (size !== head.size && size !== anchor?.size) return;
  const root = rootOf(frontier);
  if (size === head.size && (root !== head.root || frontier.join() !== head.frontier.join())) {
    yield { rule: 'head.stored', message: `at size ${size} the log has root ${root}, not what the stored head says` };
  }
  if (size === anchor?.size && root !== anchor.root) {
    const message = `at size ${size} the log has root ${root}, but its anchor vouches for ${anchor.root}`;
    yield { rule: 'head.differs', message };
  }
}

async function endFindings(log: Log, head: LogHead, source: LedgerSource): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const { anchor } = source;
  if (anchor !== null && log.size < anchor.size) {
    const message = `the log ends at size ${log.size}, but its anchor vouches for ${anchor.size}`;
    findings.push({ rule: 'head.below', message });
  }
  // A longer log is right if it was committed while it was read: then the head has come along.
  const latest = log.size > head.size ? await source.head() : head;
  if (log.size !== head.size) findings.push(...headFindings(log, latest, null));
  if (log.size > latest.size || log.size < head.size) {
    findings.push({ rule: 'head.stored', message: `the log has ${log.size} entries, its head says ${latest.size}` });
  }
  return findings;
}

/** @throws the error itself if it does not say that the store holds something else than what was written */
function tamperingOf(error: unknown): string {
  if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return error.message;
  throw error;
}
