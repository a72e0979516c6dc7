// How well a session of a coding agent was covered: its calls that were decided, and what is known of their outcomes.
// The page and the command count it from the same rows.

import { isTerminal } from '../../../core/contract/run/run-context.js';
import { AS_REPORTED } from '../../../core/contract/inspection/as-reported.js';
import { NEEDS_APPROVAL } from '../../../core/contract/inspection/needs-approval.js';
import type { EventRow } from '../../../core/contract/inspection/inspection.js';
import { HOOK_CALL, UNDECIDED_CALLS, UNGATED_CALL } from './call-labels.js';

/** Counts of the calls of one session. */
export interface CallCoverage {
  /** Calls that the client has asked about. A call that is repeated after an approval counts again. */
  readonly gated: number;
  readonly allowed: number;
  readonly denied: number;
  /** Calls whose request needed an approval. */
  readonly approvals: number;
  /** Allowed calls with a reported outcome, with an outcome that will never be known, and without one so far. */
  readonly reported: number;
  readonly unknown: number;
  readonly open: number;
  /** Calls that were executed without a decision, as far as the client has reported them. */
  readonly ungated: number;
  /** Calls that the hook has denied without a decision, because the service was away or could not read them. */
  readonly undecided: number;
}

type CoverageRow = Pick<EventRow, 'run_id' | 'label' | 'tone' | 'type' | 'state' | 'creation'>;

export class CoverageCounter {
  readonly #outcomes = new Map<string, 'created' | 'open' | 'reported' | 'unknown'>();
  #gated = 0;
  #ungated = 0;
  #approvals = 0;
  #undecided = 0;

  /** Adds a row of the session's tree. Rows of one run come in their order. */
  add({ run_id, label, tone, type, state, creation }: CoverageRow): void {
    if (type === 'input' && label === HOOK_CALL) this.#gated += 1;
    if (type === 'input' && label === UNGATED_CALL) this.#ungated += 1;
    // Each record has the number of all of them.
    if (type === 'input' && label.startsWith(UNDECIDED_CALLS))
      this.#undecided = Math.max(this.#undecided, Number(label.slice(UNDECIDED_CALLS.length)) || 0);
    if (type === 'step_trace' && tone === NEEDS_APPROVAL) this.#approvals += 1;
    if (creation?.executor === 'caller') this.#outcomes.set(run_id, 'created');
    const known = this.#outcomes.get(run_id);
    if (known === undefined) return;
    if (state === 'running') this.#outcomes.set(run_id, 'open');
    else if (known !== 'created' && label.endsWith(AS_REPORTED)) this.#outcomes.set(run_id, 'reported');
    else if (known === 'open' && state !== null && isTerminal(state)) this.#outcomes.set(run_id, 'unknown');
  }

  /** @returns null for a tree without calls of a coding agent */
  counts(): CallCoverage | null {
    const [gated, approvals, ungated, undecided] = [this.#gated, this.#approvals, this.#ungated, this.#undecided];
    const of = { created: 0, open: 0, reported: 0, unknown: 0 };
    for (const outcome of this.#outcomes.values()) of[outcome] += 1;
    const { created, ...known } = of;
    const allowed = this.#outcomes.size - created;
    return gated + ungated + undecided === 0
      ? null
      : { gated, allowed, denied: gated - allowed - approvals, approvals, ...known, ungated, undecided };
  }
}

/**
 * One line: calls seen, gated, outcomes known, gaps. There are no gaps where every call that was seen was decided, and
 * nothing keeps calls from being seen.
 * @param uncompared why calls may be missing
 */
export function coverageText(coverage: CallCoverage, uncompared: readonly string[]): string {
  const { gated, allowed, denied, approvals, reported, unknown, open, ungated, undecided } = coverage;
  const gaps = [
    ...(ungated === 0 ? [] : [`${ungated} not gated`]),
    ...(unknown === 0 ? [] : [`${unknown} allowed and refused or not reported`]),
    ...(undecided === 0 ? [] : [`${undecided} denied without a decision`]),
  ];
  const missing = [...(open === 0 ? [] : [`${open} allowed calls without an outcome so far`]), ...uncompared];
  return [
    `${gated + ungated + undecided} calls seen`,
    `${gated} gated (${allowed} allowed, ${denied} denied, ${approvals} for approval)`,
    `${reported} outcomes reported, ${open} open`,
    ...(gaps.length === 0 ? [] : [`gaps: ${gaps.join(', ')}`]),
    ...(missing.length === 0 ? [] : [`not compared: ${missing.join('; ')}`]),
    ...(gaps.length + missing.length === 0 ? ['no gaps'] : []),
  ].join(' · ');
}

/**
 * Why calls of a session of a coding agent may be missing among those that were decided. A session is only said to have
 * no gaps if there is no such reason. Their codes are recorded with the session, as a value of its scope.
 */
const TEXTS = {
  outcomes: 'its client does not report outcomes, so a call without a decision is not seen',
  failures: 'its client does not report failures',
  version: 'the hooks of its version were never measured',
  trust: 'its client ignores the hook in a folder that is not trusted',
  repository: 'of the repository run without a hook',
  user: 'of the user run without a hook',
  http: 'what its client asks over HTTP while the service is away is not counted',
  folders: 'not all folders of the project were looked at',
} as const;
export type MissingComparisonCode = keyof typeof TEXTS;

/** What a session may not be compared with. */
export interface MissingComparison {
  readonly code: MissingComparisonCode;
  /** How many of them there are. */
  readonly count?: number;
}

/** What is recorded of a session whose calls were all compared. */
const NOTHING = 'none';

/** @returns an identifier */
export const writeMissingComparisons = (reasons: readonly MissingComparison[]): string =>
  reasons.length === 0
    ? NOTHING
    : reasons.map(({ code, count }) => (count === undefined ? code : `${code}.${count}`)).join('+');

/** @param text null for a session of which nothing is recorded */
export function missingComparisonTexts(text: string | null): readonly string[] {
  if (text === null) return ['nothing has looked at what its client runs without a hook'];
  if (text === NOTHING) return [];
  return text.split('+').map((one) => {
    const [code = '', count = ''] = one.split('.');
    const known = Object.hasOwn(TEXTS, code) ? TEXTS[code as MissingComparisonCode] : `an unknown reason (${code})`;
    return isItemCode(code) ? itemsText(code, Number(count)) : known;
  });
}

/** What is counted. */
type ItemCode = 'repository' | 'user';
const isItemCode = (code: string): code is ItemCode => code === 'repository' || code === 'user';

/** Some of the names follow. */
export const itemsText = (code: ItemCode, count: number, names: readonly string[] = []): string =>
  `${count} commands, skills, agents and servers ${TEXTS[code]}` +
  (names.length === 0 ? '' : ` (${names.join(', ')}${names.length < count ? ', ...' : ''})`);

/** Whether a text is that of such a count. */
export const isItemsText = (code: ItemCode, text: string): boolean => text.includes(` servers ${TEXTS[code]}`);

export const FOLDERS_TEXT = TEXTS.folders;

/** Where the folder of the project is not there to be looked at. */
export const REPOSITORY_SINCE = 'what was added to the repository since the session began';
