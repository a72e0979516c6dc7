// The source of a changed or incomplete file. Its entries are shown as they are. What is computed from them may fail in
// any way: that is reported as a consequence of the change, not as an error of this program.

import type {
  Chart,
  CoverageReport,
  Course,
  DecisionExplanation,
  EventDetails,
  LedgerInfo,
  RowPage,
  StepStory,
} from '../../core/contract/inspection/inspection.js';
import type { SessionView } from './contract/session-view.js';
import { LedgerError } from '../../core/errors.js';
import type { ReadControl } from '../../engine/ports/pace.js';
import type { EntryReading, InspectorSource } from './inspector-source.js';

export class FlaggedSource implements InspectorSource {
  readonly #source: InspectorSource;

  constructor(source: InspectorSource) {
    this.#source = source;
  }

  info(): Promise<LedgerInfo> {
    return this.#source.info();
  }
  replayed(): Promise<null> {
    return Promise.resolve(null);
  }
  size(): Promise<number> {
    return this.#source.size();
  }
  rows(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    return this.#source.rows(from, to, control);
  }
  entries(from: number, to: number, reading?: EntryReading): Promise<readonly string[]> {
    return this.#source.entries(from, to, reading);
  }
  event(log_index: number): Promise<EventDetails | null> {
    return this.#source.event(log_index);
  }
  artifact(log_index: number, sha256: string): Promise<Uint8Array | null> {
    return this.#source.artifact(log_index, sha256);
  }
  course(run_id: string, after: number, control?: ReadControl): Promise<Course | null> {
    return computed(this.#source.course(run_id, after, control));
  }
  chart(hash: string): Promise<Chart | null> {
    return computed(this.#source.chart(hash));
  }
  step(run_id: string, step: number, control?: ReadControl): Promise<StepStory | null> {
    return computed(this.#source.step(run_id, step, control));
  }
  why(log_index: number, control?: ReadControl): Promise<DecisionExplanation | null> {
    return computed(this.#source.why(log_index, control));
  }
  async *whys(tree_id: string): AsyncIterable<DecisionExplanation> {
    try {
      yield* this.#source.whys(tree_id);
    } catch (error) {
      throw toLedgerError(error);
    }
  }
  coverage(from: number, to: number, control?: ReadControl): Promise<CoverageReport> {
    return computed(this.#source.coverage(from, to, control));
  }
  session(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null> {
    return computed(this.#source.session(session_id, at, control));
  }
  close(): Promise<void> {
    return this.#source.close();
  }
}

async function computed<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw toLedgerError(error);
  }
}

/** A request that was cancelled stays one. */
const toLedgerError = (error: unknown): unknown =>
  error instanceof LedgerError || (error instanceof Error && error.name === 'AbortError')
    ? error
    : new LedgerError({
        code: 'LEDGER_TAMPERED',
        message: 'this cannot be computed, because entries of the file were changed',
        cause: error,
      });
