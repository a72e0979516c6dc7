// The data of the inspector routes for any ledger. Long work yields to other work.

import { artifactRef, isWithheld } from '../../core/contract/artifact-ref.js';
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
import { replay, type ReplayReport } from '../../kernel/replay/replay.js';
import { type LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { loadDecisionViews, loadSessionViews, type ViewedSessions } from './added-views.js';
import { ChartCache } from './chart-cache.js';
import { LedgerError } from '../../core/errors.js';
import { FlaggedSource } from './flagged-source.js';
import {
  toArtifactInfo,
  openBundleView,
  openFlaggedView,
  createHomeView,
  type LedgerPlace,
  type LedgerView,
} from './ledger-view.js';
import { toReplayedInfo } from './replayed-info.js';
import { RowPages } from './row-pages.js';
import { ENTRY_BYTES_MAX, type EntryReading, type InspectorSource } from './inspector-source.js';
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

/**
 * The source for a bundle in a file.
 * @param key the key that must have signed; null accepts the bundle's own key, which proves only internal consistency
 * @throws LedgerError LEDGER_TAMPERED for an incomplete or changed bundle; UsageError if the file does not exist
 */
export const bundleInspectorSource = async (file: string, key: NoteVerifier | null): Promise<InspectorSource> =>
  new LedgerViewSource(await openBundleView(file, key));

/** A bundle for a person to look at: `flaw` says why it is not a complete one, or is null. */
export interface InspectedBundle {
  readonly source: InspectorSource;
  readonly flaw: string | null;
}

/**
 * The source for a file that a person wants to look at. A changed or incomplete bundle is opened too, and flagged:
 * nothing of it is verified, and what its changed entries do not allow to compute is refused.
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
    const source = new LedgerViewSource(await openFlaggedView(file, error.message));
    return { source: new FlaggedSource(source), flaw: error.message };
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
