// What the inspector's routes are answered with, of whatever ledger is looked at. Long work gives others their turns.

import { artifactRef, isWithheld } from '../../contract/artifact-ref.js';
import type {
  Chart,
  Course,
  EventDetails,
  LedgerInfo,
  RowPage,
  SessionView,
  StepStory,
  Why,
} from '../../contract/inspection.js';
import type { NoteVerifier } from '../../ledger/signed-note.js';
import type { Pause, ReadControl } from '../../ports/pace.js';
import { Courses } from '../../replay/courses.js';
import { rootOf, type LedgerReader } from '../../runtime/ledger-reader.js';
import { ChartShelf } from './chart-shelf.js';
import { artifactInfo, bundleLooked, homeLooked, type LedgerPlace, type LookedAt } from './looked-at.js';
import { PastSessions } from './past-sessions.js';
import { RowPages } from './row-pages.js';
import { ENTRY_BYTES_MAX, type EntryReading, type InspectorSource } from './source.js';
import { entryAt, stepStory } from './step-story.js';
import { whyAt, whysIn } from './why.js';

/** How long it works before others have a turn. */
const TURN_MS = 3;

/**
 * The ledger of a Turnpike that is open: `homeSource(turnpike.ledger, turnpike.home ?? turnpike.keys)`.
 * @param approvals whether whoever serves it takes answers to what waits for people
 */
export const homeSource = (ledger: LedgerReader, place: LedgerPlace | null, approvals = true): InspectorSource =>
  new LedgerSource(homeLooked(ledger, place, approvals));

/**
 * A bundle in a file.
 * @param key that must have signed it; null takes the bundle's own, which proves only that it is of one piece
 * @throws LedgerError LEDGER_TAMPERED for what is no whole bundle; UsageError where there is no such file
 */
export const bundleSource = async (file: string, key: NoteVerifier | null): Promise<InspectorSource> =>
  new LedgerSource(await bundleLooked(file, key));

class LedgerSource implements InspectorSource {
  readonly #looked: LookedAt;
  readonly #pause: Pause;
  readonly #rows: RowPages;
  readonly #charts: ChartShelf;
  readonly #courses: Courses;
  readonly #sessions: PastSessions;

  constructor(looked: LookedAt) {
    this.#looked = looked;
    this.#pause = looked.pace.begin(TURN_MS);
    this.#rows = new RowPages(looked, this.#pause);
    this.#charts = new ChartShelf(looked, this.#pause);
    this.#courses = new Courses({ source: looked, size: () => looked.size(), pause: this.#pause });
    this.#sessions = new PastSessions(looked, this.#courses, this.#pause);
  }

  info(): Promise<LedgerInfo> {
    return this.#looked.info();
  }

  size(): Promise<number> {
    return this.#looked.size();
  }

  rows(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    return this.#rows.page(from, to, control);
  }

  async entries(from: number, to: number, reading: EntryReading = {}): Promise<readonly string[]> {
    const { signal, pause = this.#pause, bytesMax = ENTRY_BYTES_MAX } = reading;
    const texts: string[] = [];
    let bytes = 0;
    if (to <= from) return texts;
    for await (const { text, log_index } of this.#looked.log(from, signal === undefined ? {} : { signal })) {
      bytes += Buffer.byteLength(text) + 1;
      if (log_index >= to || (texts.length > 0 && bytes > bytesMax)) break;
      texts.push(text);
      await pause();
    }
    return texts;
  }

  async event(log_index: number): Promise<EventDetails | null> {
    const entry = await entryAt(this.#looked, log_index);
    if (entry === null) return null;
    const { text, leaf_hash } = entry;
    return { log_index, text, leaf_hash, artifacts: (await this.#looked.shownOf(entry)).map(artifactInfo) };
  }

  async artifact(log_index: number, sha256: string): Promise<Uint8Array | null> {
    const entry = await entryAt(this.#looked, log_index);
    const artifacts = entry === null ? [] : await this.#looked.shownOf(entry);
    const found = artifacts.find((artifact) => artifactRef(artifact).hash_sha256 === sha256);
    return found === undefined || isWithheld(found) ? null : found.bytes;
  }

  async course(run_id: string, after: number, control?: ReadControl): Promise<Course | null> {
    const reached = await this.#courses.reach(rootOf(run_id), control);
    return reached?.tree.course(run_id, after, reached.through) ?? null;
  }

  chart(hash: string): Promise<Chart | null> {
    return this.#charts.chart(hash);
  }

  async step(run_id: string, step: number, control?: ReadControl): Promise<StepStory | null> {
    const reached = await this.#courses.reach(rootOf(run_id), control);
    const created = reached?.tree.createdAt(run_id) ?? null;
    if (reached === null || created === null) return null;
    const proposal = reached.tree.stepAt(run_id, step);
    if (proposal === null && reached.tree.cut === null) return null;
    const places = proposal === null ? null : { created, proposal };
    return stepStory(run_id, step, { looked: this.#looked, pause: control?.pause ?? this.#pause, places });
  }

  why(log_index: number, control?: ReadControl): Promise<Why | null> {
    return whyAt(this.#looked, log_index, control?.pause ?? this.#pause);
  }

  whys(tree_id: string): AsyncIterable<Why> {
    return whysIn(this.#looked, tree_id, this.#pause);
  }

  session(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null> {
    return this.#sessions.view(session_id, at, control);
  }

  async close(): Promise<void> {
    await this.#charts.close();
    await this.#looked.close();
  }
}
