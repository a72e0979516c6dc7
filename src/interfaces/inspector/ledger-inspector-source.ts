// The data of the inspector routes for any ledger. Long work yields to other work.

import { artifactRef, isWithheld } from '../../core/contract/artifact-ref.js';
import { archivedText, nameInLedger } from '../../core/contract/entry-name.js';
import type {
  Chart,
  CoverageReport,
  Course,
  EventDetails,
  LedgerInfo,
  ReplayedInfo,
  RowPage,
  StepStory,
  DecisionExplanation,
} from '../../core/contract/inspection/inspection.js';
import type { SessionView } from './contract/session-view.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import type { Pause, ReadControl } from '../../engine/ports/pace.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { CourseCache } from '../../kernel/replay/course-cache.js';
import { replay, type ReplayReport, type UnrecomputedTree } from '../../kernel/replay/replay.js';
import { type LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { loadDecisionViews, loadSessionViews, type ViewedSessions } from './added-views.js';
import { ChartCache } from './chart-cache.js';
import { packRows, RowPacker, toEventRow } from './contract/event-row.js';
import { LedgerError } from '../../core/errors.js';
import { createLruMap } from '../../system/lru-map.js';
import {
  toArtifactInfo,
  openBundleView,
  openFlaggedView,
  createHomeView,
  type LedgerPlace,
  type LedgerView,
} from './ledger-view.js';
import { ENTRY_BYTES_MAX, ROWS_MAX, type EntryReading, type InspectorSource } from './inspector-source.js';
import { entryAt, readStepStory } from './step-story.js';

/** How long work runs before it yields, in milliseconds. */
const SLICE_MS = 3;

/**
 * The source for an open Turnpike: `homeSource(turnpike.ledger, turnpike.home ?? turnpike.keys)`.
 * @param approvals whether the service that serves it accepts votes
 */
export const homeInspectorSource = (
  ledger: LedgerReader,
  place: LedgerPlace | null,
  approvals = true,
): InspectorSource => new LedgerViewSource(createHomeView(ledger, place, approvals));

/** A bundle for a person to look at: `flaw` says why it is not a complete one, or is null. */
export interface InspectedBundle {
  readonly source: InspectorSource;
  readonly flaw: string | null;
}

/**
 * The source for a file that a person wants to look at. A changed or incomplete bundle is opened too, and flagged:
 * nothing of it is verified, and what its changed entries do not allow to compute is refused.
 * @param key the key that must have signed; null accepts the bundle's own key, which proves only internal consistency
 * @throws LedgerError LEDGER_TAMPERED for a file of another kind; UsageError if the file does not exist
 */
export async function inspectedBundle(
  file: string,
  key: NoteVerifier | null,
  progress: ProgressReporter = NO_PROGRESS,
): Promise<InspectedBundle> {
  try {
    return { source: new LedgerViewSource(await openBundleView(file, key, progress)), flaw: null };
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
    return { source: new FlaggedSource(await openFlaggedView(file, error.message)), flaw: error.message };
  }
}

class LedgerViewSource implements InspectorSource {
  readonly #ledger: LedgerView;
  readonly #pause: Pause;
  readonly #rows: RowPages;
  readonly #charts: ChartCache;
  readonly #courses: CourseCache;
  #sessions: ViewedSessions | null = null;
  #replaying: Promise<ReplayReport> | null = null;
  #found: ReplayedInfo | null = null;

  constructor(view: LedgerView) {
    this.#ledger = view;
    this.#pause = view.pace.begin(SLICE_MS);
    this.#rows = new RowPages(view, this.#pause);
    this.#charts = new ChartCache(view, this.#pause);
    this.#courses = new CourseCache({ source: view, size: () => view.size(), pause: this.#pause });
  }

  async info(): Promise<LedgerInfo> {
    const info = await this.#ledger.info();
    if (!this.#ledger.isFinal) return info;
    // The page asks again until the replay has ended. The caller of `replayed` gets its error.
    this.replayed().catch(() => undefined);
    return { ...info, replayed: this.#found };
  }

  async replayed(): Promise<ReplayedInfo | null> {
    if (!this.#ledger.isFinal) return null;
    this.#replaying ??= replay({ ...this.#ledger, log: () => pausing(this.#ledger.log(), this.#pause) });
    this.#found = toReplayedInfo(await this.#replaying);
    return this.#found;
  }

  size(): Promise<number> {
    return this.#ledger.size();
  }

  rows(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    return this.#rows.page(from, to, control);
  }

  async entries(from: number, to: number, reading: EntryReading = {}): Promise<readonly string[]> {
    const { signal, pause = this.#pause, bytesMax = ENTRY_BYTES_MAX } = reading;
    const texts: string[] = [];
    let bytes = 0;
    if (to <= from) return texts;
    for await (const { text, log_index } of this.#ledger.log(from, signal === undefined ? {} : { signal })) {
      bytes += Buffer.byteLength(text) + 1;
      if (log_index >= to || (texts.length > 0 && bytes > bytesMax)) break;
      texts.push(text);
      await pause();
    }
    return texts;
  }

  async event(log_index: number): Promise<EventDetails | null> {
    const entry = await entryAt(this.#ledger, log_index);
    if (entry === null) return null;
    const { text, leaf_hash } = entry;
    return { log_index, text, leaf_hash, artifacts: (await this.#ledger.shownOf(entry)).map(toArtifactInfo) };
  }

  async artifact(log_index: number, sha256: string): Promise<Uint8Array | null> {
    const entry = await entryAt(this.#ledger, log_index);
    const artifacts = entry === null ? [] : await this.#ledger.shownOf(entry);
    const found = artifacts.find((artifact) => artifactRef(artifact).hash_sha256 === sha256);
    return found === undefined || isWithheld(found) ? null : found.bytes;
  }

  async course(run_id: string, after: number, control?: ReadControl): Promise<Course | null> {
    const point = await this.#courses.refresh(rootRunIdOf(run_id), control);
    return point?.tree.course(run_id, after, point.through) ?? null;
  }

  chart(hash: string): Promise<Chart | null> {
    return this.#charts.chart(hash);
  }

  async step(run_id: string, step: number, control?: ReadControl): Promise<StepStory | null> {
    const point = await this.#courses.refresh(rootRunIdOf(run_id), control);
    const created = point?.tree.createdAt(run_id) ?? null;
    if (point === null || created === null) return null;
    const proposal = point.tree.stepAt(run_id, step);
    if (proposal === null && point.tree.cut === null) return null;
    const places = proposal === null ? null : { created, proposal };
    return readStepStory(run_id, step, { ledger: this.#ledger, pause: control?.pause ?? this.#pause, places });
  }

  async why(log_index: number, control?: ReadControl): Promise<DecisionExplanation | null> {
    const views = await loadDecisionViews();
    return views.explainDecisionAt(this.#ledger, log_index, control?.pause ?? this.#pause);
  }

  async *whys(tree_id: string): AsyncIterable<DecisionExplanation> {
    const views = await loadDecisionViews();
    yield* views.explainTreeDecisions(this.#ledger, tree_id, this.#pause);
  }

  async coverage(from: number, to: number, control?: ReadControl): Promise<CoverageReport> {
    const views = await loadDecisionViews();
    const log = () => pausing(this.#ledger.log(), control?.pause ?? this.#pause);
    return { from, to, ...(await views.coverageOf({ ...this.#ledger, log }, { from, to })) };
  }

  async session(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null> {
    const open = await loadSessionViews();
    this.#sessions ??= open(this.#ledger, this.#courses, this.#pause);
    return this.#sessions.view(session_id, at, control);
  }

  async close(): Promise<void> {
    await this.#charts.close();
    await this.#ledger.close();
  }
}

async function* pausing<T>(items: AsyncIterable<T>, pause: Pause): AsyncIterable<T> {
  for await (const item of items) {
    yield item;
    await pause();
  }
}

/** How many reasons are listed. */
const NOTES_MAX = 20;

/** What a replay of a file has found, for the page: a proof over hashes does not repeat any decision. */
function toReplayedInfo({ verdict, difference, not_recomputed = [], archived }: ReplayReport): ReplayedInfo {
  if (difference !== null) {
    const place =
      difference.log_index === null ? 'after the last entry' : `at entry ${nameInLedger(difference.log_index)}`;
    return { verdict, notes: [`the decisions differ ${place}: ${difference.rule}`] };
  }
  if (verdict === 'nothing') return { verdict, notes: ['there is no input to replay'] };
  const trees = new Map<string, number>();
  for (const tree of not_recomputed) trees.set(reasonOf(tree), (trees.get(reasonOf(tree)) ?? 0) + 1);
  const notes = [...trees].map(([why, count]) => `${count === 1 ? '1 run tree' : `${count} run trees`}: ${why}`);
  if (archived !== undefined) notes.unshift(archivedText(archived));
  return { verdict, notes: notes.slice(0, NOTES_MAX) };
}

const reasonOf = ({ withheld, needs }: UnrecomputedTree): string =>
  needs ?? (withheld === 'erased' ? 'content was erased with its case' : 'a lane withholds content');

/**
 * The source of a changed or incomplete file. Its entries are shown as they are. What is computed from them may fail in
 * any way: that is reported as a consequence of the change, not as an error of this program.
 */
class FlaggedSource extends LedgerViewSource {
  override course(...query: Parameters<InspectorSource['course']>): Promise<Course | null> {
    return computed(super.course(...query));
  }
  override chart(hash: string): Promise<Chart | null> {
    return computed(super.chart(hash));
  }
  override step(...query: Parameters<InspectorSource['step']>): Promise<StepStory | null> {
    return computed(super.step(...query));
  }
  override why(...query: Parameters<InspectorSource['why']>): Promise<DecisionExplanation | null> {
    return computed(super.why(...query));
  }
  override async *whys(tree_id: string): AsyncIterable<DecisionExplanation> {
    try {
      yield* super.whys(tree_id);
    } catch (error) {
      throw toLedgerError(error);
    }
  }
  override coverage(...query: Parameters<InspectorSource['coverage']>): Promise<CoverageReport> {
    return computed(super.coverage(...query));
  }
  override session(...query: Parameters<InspectorSource['session']>): Promise<SessionView | null> {
    return computed(super.session(...query));
  }
}

const computed = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw toLedgerError(error);
  });

/** A request that was cancelled stays one. */
const toLedgerError = (error: unknown): unknown =>
  error instanceof LedgerError || isCancelled(error)
    ? error
    : new LedgerError({
        code: 'LEDGER_TAMPERED',
        message: 'this cannot be computed, because entries of the file were changed',
        cause: error,
      });

const isCancelled = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** Maximum number of cached pages, of up to `ROWS_MAX` rows each. */
const PAGES_MAX = 20;

/** Pages of rows, cached: a page is the same for every client, because entries never change. */
class RowPages {
  readonly #ledger: LedgerView;
  readonly #pause: Pause;
  readonly #pages = createLruMap<Promise<RowPage>>(PAGES_MAX);

  constructor(ledger: LedgerView, pause: Pause) {
    this.#ledger = ledger;
    this.#pause = pause;
  }

  /** @throws LedgerError LEDGER_ARCHIVED */
  async page(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    const end = Math.min(to, from + ROWS_MAX, await this.#ledger.size());
    if (end <= from) return packRows([]);
    const key = `${from}-${end}`;
    for (let known = this.#pages.get(key); known !== undefined; known = this.#pages.get(key)) {
      try {
        return await known;
      } catch (error) {
        if (!isCancelled(error)) throw error;
        // The client for which the page was computed has left: compute it again for this one.
        control?.signal.throwIfAborted();
        this.#forget(key, known);
      }
    }
    const page = this.#createPage(from, end, control);
    this.#pages.set(key, page);
    page.catch(() => this.#forget(key, page));
    return page;
  }

  #forget(key: string, page: Promise<RowPage>): void {
    if (this.#pages.get(key) === page) this.#pages.delete(key);
  }

  async #createPage(from: number, end: number, control?: ReadControl): Promise<RowPage> {
    const packer = new RowPacker();
    const pause = control?.pause ?? this.#pause;
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { text, log_index, leaf_hash } of this.#ledger.log(from, options)) {
      if (log_index >= end) break;
      packer.add(toEventRow(text, log_index, leaf_hash));
      await pause();
    }
    return packer.page();
  }
}
