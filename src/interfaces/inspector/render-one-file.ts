// The page as one file that needs no service: the built template with a ledger inserted. Data beyond the size limit is
// omitted, content first, and the page reports that it is missing.

import { LedgerError, UsageError } from '../../core/errors.js';
import type {
  ArtifactInfo,
  Chart,
  Course,
  DecisionExplanation,
  EventDetails,
  LedgerInfo,
  RowPage,
  StepStory,
} from '../../core/contract/inspection/inspection.js';
import type { SessionView } from './contract/session-view.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { ROWS_MAX, type InspectorSource } from './inspector-source.js';

/** The data of a ledger inside the one-file page. Members of maps have the names of the service's routes. */
export interface InlineData {
  readonly info: LedgerInfo;
  readonly pages: RowPage[];
  readonly entries: string[];
  readonly events: Record<string, Pick<EventDetails, 'leaf_hash' | 'artifacts'>>;
  /** Base64 contents by SHA-256. */
  readonly artifacts: Record<string, string>;
  readonly courses: Record<string, Course>;
  readonly charts: Record<string, Chart>;
  readonly steps: Record<string, StepStory>;
  readonly whys: Record<string, DecisionExplanation>;
  readonly sessions: Record<string, SessionView>;
}

export interface OneFileLimits {
  /** Size limit of the whole file in bytes. */
  readonly maxBytes: number;
}

const DATA_ELEMENT = '<script type="application/json" id="turnpike-data"></script>';

/**
 * @param template the built `one-file.html`
 * @throws UsageError if the entries alone exceed the limit
 */
export async function renderOneFile(
  template: string,
  source: InspectorSource,
  { maxBytes }: OneFileLimits,
  progress: ProgressReporter = NO_PROGRESS,
): Promise<string> {
  const [before, after, ...more] = template.split(DATA_ELEMENT);
  if (before === undefined || after === undefined || more.length > 0)
    throw new UsageError({ code: 'USAGE', message: 'This is not the template of a page' });
  const collector = new InlineDataCollector(source, maxBytes - Buffer.byteLength(template), progress);
  const data = await collector.collect();
  return `${before}${DATA_ELEMENT.replace('></', `>${toHtmlSafeJson(data)}</`)}${after}`;
}

/** JSON that cannot end the HTML element that contains it. */
const toHtmlSafeJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Reads a ledger into the data of a page, within a number of bytes. */
class InlineDataCollector {
  readonly #source: InspectorSource;
  readonly #progress: ProgressReporter;
  /** The bytes that may still be written. */
  #bytesLeft: number;

  constructor(source: InspectorSource, bytes: number, progress: ProgressReporter) {
    this.#source = source;
    this.#bytesLeft = bytes;
    this.#progress = progress;
  }

  async collect(): Promise<InlineData> {
    const data = await this.#readLedger();
    await this.#addCourses(data);
    const tree_ids = treeIdsOf(data);
    this.#progress.begin({ label: 'explaining decisions', unit: 'trees', total: tree_ids.size });
    for (const tree_id of tree_ids) {
      await nullIfGone(this.#addExplanations(data, tree_id));
      this.#progress.advance();
    }
    await this.#addEvents(data);
    return data;
  }

  /** @returns whether the value fits; if so, it is counted */
  #reserve(value: unknown): boolean {
    // Escaping turns some bytes into three or six, so this measures the escaped text, with a margin.
    const bytes = Buffer.byteLength(toHtmlSafeJson(value)) + 80;
    if (bytes > this.#bytesLeft) return false;
    this.#bytesLeft -= bytes;
    return true;
  }

  async #readLedger(): Promise<InlineData> {
    const source = this.#source;
    const replayed = await source.replayed();
    const found = replayed === null ? {} : { replayed };
    const info = { ...(await source.info()), ...found, live: false, approvals: false };
    const data: InlineData = {
      info,
      pages: [],
      entries: [],
      ...{ events: {}, artifacts: {}, courses: {}, charts: {}, steps: {}, whys: {}, sessions: {} },
    };
    this.#progress.begin({ label: 'listing entries', unit: 'entries', total: info.size - info.begin });
    for (let from = info.begin; from < info.size;) {
      const page = await source.rows(from, Math.min(info.size, from + ROWS_MAX));
      if (page.rows.length === 0) break;
      data.pages.push(page);
      this.#progress.advance(page.rows.length);
      from += page.rows.length;
    }
    this.#progress.begin({ label: 'reading entries', unit: 'entries', total: info.size - info.begin });
    for (let from = info.begin; from < info.size;) {
      const texts = await source.entries(from, info.size);
      if (texts.length === 0) break;
      for (const text of texts) data.entries.push(text);
      from += texts.length;
      this.#progress.advance(texts.length);
    }
    if (this.#reserve(data)) return data;
    throw new UsageError({
      code: 'USAGE',
      message: 'The entries alone are more than one file may have: export a case',
    });
  }

  /** Adds for every run its course, its steps, and the charts of its machines. */
  async #addCourses(data: InlineData): Promise<void> {
    const source = this.#source;
    const run_ids = runIdsOf(data);
    this.#progress.begin({ label: 'reading runs', unit: 'runs', total: run_ids.size });
    for (const run_id of run_ids) {
      this.#progress.advance();
      const course = await nullIfGone(source.course(run_id, 0));
      if (course !== null && this.#reserve(course)) data.courses[run_id] = course;
      for (const hash of [course?.chart, course?.step_chart]) {
        if (hash == null || Object.hasOwn(data.charts, hash)) continue;
        const chart = await source.chart(hash);
        if (chart !== null && this.#reserve(chart)) data.charts[hash] = chart;
      }
      for (let step = 1; step <= (course?.steps.length ?? 0); step += 1) {
        const story = await nullIfGone(source.step(run_id, step));
        if (story !== null && this.#reserve(story)) data.steps[`${run_id}/${step}`] = story;
      }
      const isSession = run_id.startsWith('ses_') && !run_id.includes('.');
      const session = isSession ? await nullIfGone(source.session(run_id, null)) : null;
      if (session !== null && this.#reserve(session)) data.sessions[run_id] = session;
    }
  }

  async #addExplanations(data: InlineData, tree_id: string): Promise<void> {
    for await (const why of this.#source.whys(tree_id)) if (this.#reserve(why)) data.whys[why.log_index] = why;
  }

  /** Adds the content of entries while it fits. */
  async #addEvents(data: InlineData): Promise<void> {
    const { begin } = data.info;
    this.#progress.begin({ label: 'reading content', unit: 'entries', total: data.entries.length });
    for (const at of data.entries.keys()) {
      this.#progress.advance();
      const event = await this.#source.event(begin + at);
      if (event === null) continue;
      const { leaf_hash, artifacts, log_index } = event;
      if (!this.#reserve({ leaf_hash, artifacts })) return;
      data.events[log_index] = { leaf_hash, artifacts };
      for (const artifact of artifacts) await this.#addArtifact(data, log_index, artifact);
    }
  }

  async #addArtifact(data: InlineData, log_index: number, { sha256, withheld }: ArtifactInfo): Promise<void> {
    if (withheld !== null || Object.hasOwn(data.artifacts, sha256)) return;
    const bytes = await nullIfGone(this.#source.artifact(log_index, sha256));
    if (bytes === null) return;
    const text = Buffer.from(bytes).toString('base64');
    if (this.#reserve(text)) data.artifacts[sha256] = text;
  }
}

/** Null for erased or withheld content: the page reports the gap. */
async function nullIfGone<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    // The file still contains the entries, and its reader verifies them.
    if (error instanceof LedgerError && GONE_CODES.has(error.code)) return null;
    throw error;
  }
}
const GONE_CODES: ReadonlySet<string> = new Set([
  'LEDGER_ERASED',
  'LEDGER_ARCHIVED',
  'LEDGER_TAMPERED',
  'LEDGER_OF_LATER_VERSION',
  'LEDGER_UNSUPPORTED',
]);

const treeIdsOf = ({ pages }: InlineData): ReadonlySet<string> =>
  new Set(pages.flatMap(({ texts, rows }) => rows.map(([, tree]) => texts[tree] ?? '')));

function runIdsOf({ pages }: InlineData): ReadonlySet<string> {
  const ids = pages.flatMap(({ texts, rows }) =>
    rows.flatMap(([, tree, run]) => [texts[tree] ?? '', texts[run] ?? '']),
  );
  return new Set(ids.filter((id) => id !== ''));
}
