// Time travel: the state of every run at an entry, and of the trees that features have opened. The fold continues
// from the newest cached replay point before the entry, and saves points on its way, so that the next query costs less
// (decision 0008).

import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import { LedgerError, UsageError } from '../../core/errors.js';
import { sha256 } from '../../core/contract/hash.js';
import type { ArchivedParts } from '../../core/ledger/readable-ledger.js';
import type { EndedRuns, HistoryCache, ReplayPoint } from '../../core/ledger/history-cache.js';
import { History, type TreeReplaySource } from './history.js';
import {
  listSummaries,
  type LedgerState,
  type PlacedSummary,
  type RootSummaries,
  type RunSnapshot,
  type ArchivedPrefix,
  type EndedItems,
  type StoredEndedItems,
} from './ledger-state.js';
import type { ReplayEntry } from './replay.js';

/** Entries of the log between two replay points: the maximum that is folded to reach an entry. */
export const POINT_ENTRIES = 4_096;

/** A log that can be read from any index. */
export interface HistorySource extends TreeReplaySource {
  /** The entries in log order, from `fromIndex` on; by default from the first one. */
  log(fromIndex?: number): AsyncIterable<ReplayEntry & { readonly leaf_hash?: string }>;
  readonly archives?: Pick<ArchivedParts, 'parts' | 'treeCount'>;
  /** For an evidence bundle: where its entries begin. Nothing else is known of what precedes them. */
  readonly begin?: Pick<ArchivedPrefix, 'size'>;
}

/** Which state of a ledger `stateAt` returns. */
export interface StateOptions {
  /** A log index; with `tree_id`, the seq of an entry of that tree. */
  readonly until: number;
  /** Restricts the result to this tree. */
  readonly tree_id?: string;
  readonly pointEntries?: number;
}

/**
 * The state of every run, and of the trees that features have opened, right after entry `until`.
 * @throws UsageError if there is no such entry; LedgerError LEDGER_TAMPERED if the log does not fold
 */
export async function stateAt(
  source: HistorySource,
  cache: HistoryCache | null,
  options: StateOptions,
): Promise<LedgerState> {
  const { summaries, until, through, time, trees, runs, ...rest } = await readState(source, cache, options);
  return { until, through, time, trees, runs, ...listSummaries(summaries), ...rest };
}

/** A state whose summaries are not listed by feature yet. */
interface FoldedState extends Omit<LedgerState, keyof RootSummaries> {
  readonly summaries: readonly PlacedSummary[];
}

async function readState(
  source: HistorySource,
  cache: HistoryCache | null,
  { until, tree_id, pointEntries = POINT_ENTRIES }: StateOptions,
): Promise<FoldedState> {
  if (tree_id === undefined) return readLedgerAt(source, cache, until, pointEntries);
  // A young tree is folded alone; for an old one, replay points are faster.
  if (until < pointEntries) return readTreeAt(source, tree_id, until);
  for await (const { log_index, seq } of source.tree(tree_id, until)) {
    if (seq === until) return restrictToTree(await readLedgerAt(source, cache, log_index, pointEntries), tree_id);
  }
  throw noEntryError(`there is no entry ${nameInTree(tree_id, until)}`);
}

async function readLedgerAt(
  source: HistorySource,
  cache: HistoryCache | null,
  until: number,
  pointEntries: number,
): Promise<FoldedState> {
  if (cache === null) return foldTo(source, null, until, pointEntries);
  try {
    return await foldTo(source, cache, until, pointEntries);
  } catch (error) {
    // A cached point may be damaged or belong to another history; the entries alone suffice.
    if (
      error instanceof UsageError ||
      isArchived(error) ||
      !(error instanceof LedgerError || error instanceof SyntaxError)
    )
      throw error;
    await cache.clear();
    return foldTo(source, cache, until, pointEntries);
  }
}

const isArchived = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_ARCHIVED';

async function foldTo(
  source: HistorySource,
  cache: HistoryCache | null,
  until: number,
  pointEntries: number,
): Promise<FoldedState> {
  const archived = await readArchivedPrefix(source);
  if (until < archived.size) throw archivedError(until, archived.size);
  const from = cache === null ? null : await findPointBefore(source, cache, until + 1, archived.size);
  const history = new History(source, cache, archived);
  const ended: EndedItems[] = [];
  if (from !== null) {
    history.resumeFrom(from.point);
    ended.push(...from.ended);
  }
  let point = history.size;
  let canSave = cache !== null;
  for await (const entry of source.log(history.size)) {
    if (history.size > until && history.isSettled) break;
    // With what is missing installed, the point would be another one.
    canSave &&= history.needs === null;
    if (cache !== null && history.isSettled && history.size - point >= pointEntries) {
      ended.push(history.ended);
      const created = history.createPoint();
      // If the earlier points were deleted meanwhile, no new point may refer to them.
      const after = point === archived.size ? 0 : point;
      canSave = canSave && (await cache.save(created.point, created.snapshots, after));
      point = created.point.size;
    }
    await history.take(entry);
  }
  return stateOf(history, ended, until);
}

function stateOf(history: History, before: readonly EndedItems[], until: number): FoldedState {
  const { size } = history;
  if (size <= until)
    throw noEntryError(
      `the log has no entry ${nameInLedger(until)}: ${size === 0 ? 'the log is empty' : `the last is ${nameInLedger(size - 1)}`}`,
    );
  if (!history.isSettled)
    throw new LedgerError({
      code: 'LEDGER_TAMPERED',
      message: `the log ends at entry ${nameInLedger(size - 1)}, in the middle of an input`,
    });
  const ended = [...before, history.ended];
  return {
    until,
    through: size - 1,
    time: history.time,
    trees: history.trees,
    runs: [...ended.flatMap((part) => part.runs), ...history.live].sort((one, other) => one.created - other.created),
    summaries: [...ended.flatMap((part) => part.summaries), ...history.summaries],
    ...notRecomputed(history.unfoldable),
    ...(history.needs === null ? {} : { needs: history.needs }),
  };
}

/** One tree, folded from its first entry. */
async function readTreeAt(source: HistorySource, tree_id: string, until: number): Promise<FoldedState> {
  const history = new History(source, null);
  let seqs = 0;
  let at = 0;
  for await (const entry of source.tree(tree_id)) {
    if (seqs > until && history.isSettled) break;
    await history.take(entry);
    seqs = entry.seq + 1;
    if (entry.seq === until) at = entry.log_index;
  }
  if (seqs <= until)
    throw noEntryError(
      `there is no entry ${nameInTree(tree_id, until)}${seqs === 0 ? '' : `: the last is ${nameInTree(tree_id, seqs - 1)}`}`,
    );
  return stateOf(history, [], at);
}

function restrictToTree(state: FoldedState, tree_id: string): FoldedState {
  const runs = state.runs.filter((run: RunSnapshot) => run.tree_id === tree_id);
  const summaries = state.summaries.filter((summary) => summary.tree_id === tree_id);
  const isLive = runs.some(({ reason }) => reason === null) || summaries.some(({ isOver }) => !isOver);
  const { not_recomputed, ...rest } = state;
  const unfoldable = (not_recomputed ?? []).filter((unfoldable_id) => unfoldable_id === tree_id);
  return { ...rest, trees: { begun: 1, ended: isLive ? 0 : 1 }, runs, summaries, ...notRecomputed(unfoldable) };
}

const notRecomputed = (unfoldable: readonly string[]): Pick<LedgerState, 'not_recomputed'> =>
  unfoldable.length === 0 ? {} : { not_recomputed: unfoldable };

/** The newest point that matches the ledger, and what had ended by then; null if the cache is unusable. */
async function findPointBefore(
  source: HistorySource,
  cache: HistoryCache,
  size: number,
  archived: number,
): Promise<{ readonly point: ReplayPoint; readonly ended: readonly EndedItems[] } | null> {
  const point = await findNewestPoint(source, cache, size, archived);
  if (point === null) return null;
  const ended = collectEnded(point, await cache.ended(point.size), archived);
  if (ended !== null) return { point, ended };
  await cache.clear();
  return null;
}

/**
 * Collects what had ended by a point: each point names the one before it. Other points may lie between those, from a
 * reader that folded at the same time, or from a ledger that was restored to an earlier state and continued
 * differently.
 * @returns null if a named point is missing or damaged
 */
function collectEnded(
  { size }: ReplayPoint,
  parts: readonly EndedRuns[],
  archived: number,
): readonly EndedItems[] | null {
  const bySize = new Map(parts.map((part) => [part.size, part]));
  const found: EndedItems[] = [];
  let at = size;
  while (at > archived) {
    const part = bySize.get(at);
    if (part === undefined || sha256(part.ended) !== part.ended_sha256) return null;
    const ended = JSON.parse(part.ended) as StoredEndedItems;
    if (!(ended.since < at)) return null;
    found.push(ended);
    at = ended.since;
  }
  return at === archived ? found.reverse() : null;
}

/**
 * The newest point that matches the ledger, and the size of its archived part. If a point does not match, the whole
 * cache is cleared.
 */
export async function findNewestPoint(
  source: Pick<HistorySource, 'log'>,
  cache: HistoryCache,
  size: number,
  archived: number,
): Promise<ReplayPoint | null> {
  const point = await cache.point(size);
  // What had ended before belongs to trees that are archived by now, so it must not be returned any more.
  const same = point === null || (sha256(point.live) === point.live_sha256 && archivedSizeOf(point) === archived);
  if (same && (point === null || (await isMatchingPoint(source, point)))) return point;
  await cache.clear();
  return null;
}

const archivedSizeOf = ({ live }: ReplayPoint): number =>
  (JSON.parse(live) as { readonly archived?: number }).archived ?? 0;

/** Whether the entry before the point is the one after which the point was created. */
async function isMatchingPoint(source: Pick<HistorySource, 'log'>, { size, live }: ReplayPoint): Promise<boolean> {
  const { leaf_hash } = JSON.parse(live) as { readonly leaf_hash: string };
  for await (const entry of source.log(size - 1)) return entry.log_index === size - 1 && entry.leaf_hash === leaf_hash;
  return false;
}

/** The size of the archived part of a log. */
export async function readArchivedPrefix({
  archives,
  begin,
}: Pick<HistorySource, 'archives' | 'begin'>): Promise<ArchivedPrefix> {
  const size = begin?.size ?? (await archives?.parts())?.at(-1)?.size ?? 0;
  return size === 0 ? { size, trees: 0 } : { size, trees: (await archives?.treeCount()) ?? 0 };
}

const archivedError = (until: number, size: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_ARCHIVED',
    message: `entry ${nameInLedger(until)} is archived: the ledger continues from ${nameInLedger(size)}`,
  });

const noEntryError = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
