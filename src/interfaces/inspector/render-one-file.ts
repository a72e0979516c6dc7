// The page as one file that needs no service: the built template with a ledger inserted. Data beyond the size limit is
// omitted, content first, and the page reports that it is missing.

import { LedgerError, UsageError } from '../../core/errors.js';
import type { ArtifactInfo } from '../../core/contract/inspection/inspection.js';
import type { InlineData } from './inline-data.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { ROWS_MAX, type InspectorSource } from './inspector-source.js';

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
  if (before === undefined || after === undefined || more.length > 0) throw invalidTemplateError();
  const budget = new SizeBudget(maxBytes - Buffer.byteLength(template));
  const data = await collectLedger(source, budget, progress);
  await addCourses(source, data, budget, progress);
  const tree_ids = treeIdsOf(data);
  progress.begin({ label: 'explaining decisions', unit: 'trees', total: tree_ids.size });
  for (const tree_id of tree_ids) {
    await nullIfGone(addExplanations(source, data, budget, tree_id));
    progress.advance();
  }
  await addEvents(source, data, budget, progress);
  return `${before}${DATA_ELEMENT.replace('></', `>${toHtmlSafeJson(data)}</`)}${after}`;
}

const invalidTemplateError = (): UsageError =>
  new UsageError({ code: 'USAGE', message: 'This is not the template of a page' });

/** JSON that cannot end the HTML element that contains it. */
export const toHtmlSafeJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The bytes that may still be written. */
class SizeBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** @returns whether the value fits; if so, it is counted */
  reserve(value: unknown): boolean {
    // Escaping turns some bytes into three or six, so this measures the escaped text, with a margin.
    const bytes = Buffer.byteLength(toHtmlSafeJson(value)) + 80;
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}

async function collectLedger(
  source: InspectorSource,
  budget: SizeBudget,
  progress: ProgressReporter,
): Promise<InlineData> {
  const replayed = await source.replayed();
  const info = { ...(await source.info()), ...(replayed === null ? {} : { replayed }), live: false, approvals: false };
  const data: InlineData = {
    info,
    pages: [],
    entries: [],
    events: {},
    artifacts: {},
    courses: {},
    charts: {},
    steps: {},
    whys: {},
    sessions: {},
  };
  progress.begin({ label: 'listing entries', unit: 'entries', total: info.size - info.begin });
  for (let from = info.begin; from < info.size;) {
    const page = await source.rows(from, Math.min(info.size, from + ROWS_MAX));
    if (page.rows.length === 0) break;
    data.pages.push(page);
    progress.advance(page.rows.length);
    from += page.rows.length;
  }
  progress.begin({ label: 'reading entries', unit: 'entries', total: info.size - info.begin });
  for (let from = info.begin; from < info.size;) {
    const texts = await source.entries(from, info.size);
    if (texts.length === 0) break;
    for (const text of texts) data.entries.push(text);
    from += texts.length;
    progress.advance(texts.length);
  }
  if (!budget.reserve(data)) {
    throw new UsageError({
      code: 'USAGE',
      message: 'The entries alone are more than one file may have: export a case',
    });
  }
  return data;
}

/** Adds for every run its course, its steps, and the charts of its machines. */
async function addCourses(
  source: InspectorSource,
  data: InlineData,
  budget: SizeBudget,
  progress: ProgressReporter,
): Promise<void> {
  const run_ids = runIdsOf(data);
  progress.begin({ label: 'reading runs', unit: 'runs', total: run_ids.size });
  for (const run_id of run_ids) {
    progress.advance();
    const course = await nullIfGone(source.course(run_id, 0));
    if (course !== null && budget.reserve(course)) data.courses[run_id] = course;
    for (const hash of [course?.chart, course?.step_chart]) {
      if (hash == null || Object.hasOwn(data.charts, hash)) continue;
      const chart = await source.chart(hash);
      if (chart !== null && budget.reserve(chart)) data.charts[hash] = chart;
    }
    for (let step = 1; step <= (course?.steps.length ?? 0); step += 1) {
      const story = await nullIfGone(source.step(run_id, step));
      if (story !== null && budget.reserve(story)) data.steps[`${run_id}/${step}`] = story;
    }
    const isSession = run_id.startsWith('ses_') && !run_id.includes('.');
    const session = isSession ? await nullIfGone(source.session(run_id, null)) : null;
    if (session !== null && budget.reserve(session)) data.sessions[run_id] = session;
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

async function addExplanations(
  source: InspectorSource,
  data: InlineData,
  budget: SizeBudget,
  tree_id: string,
): Promise<void> {
  for await (const why of source.whys(tree_id)) if (budget.reserve(why)) data.whys[why.log_index] = why;
}

function treeIdsOf({ pages }: InlineData): ReadonlySet<string> {
  return new Set(pages.flatMap(({ texts, rows }) => rows.map(([, tree]) => texts[tree] ?? '')));
}

function runIdsOf({ pages }: InlineData): ReadonlySet<string> {
  const ids = pages.flatMap(({ texts, rows }) =>
    rows.flatMap(([, tree, run]) => [texts[tree] ?? '', texts[run] ?? '']),
  );
  return new Set(ids.filter((id) => id !== ''));
}

/** Adds the content of entries while it fits. */
async function addEvents(
  source: InspectorSource,
  data: InlineData,
  budget: SizeBudget,
  progress: ProgressReporter,
): Promise<void> {
  const { begin } = data.info;
  progress.begin({ label: 'reading content', unit: 'entries', total: data.entries.length });
  for (const at of data.entries.keys()) {
    progress.advance();
    const event = await source.event(begin + at);
    if (event === null) continue;
    const { leaf_hash, artifacts, log_index } = event;
    if (!budget.reserve({ leaf_hash, artifacts })) return;
    data.events[log_index] = { leaf_hash, artifacts };
    for (const artifact of artifacts) await addArtifact(source, data, budget, { ...artifact, log_index });
  }
}

async function addArtifact(
  source: InspectorSource,
  data: InlineData,
  budget: SizeBudget,
  { log_index, sha256, withheld }: ArtifactInfo & { readonly log_index: number },
): Promise<void> {
  if (withheld !== null || Object.hasOwn(data.artifacts, sha256)) return;
  const bytes = await nullIfGone(source.artifact(log_index, sha256));
  if (bytes === null) return;
  const text = Buffer.from(bytes).toString('base64');
  if (budget.reserve(text)) data.artifacts[sha256] = text;
}
