// What verification decides about a ledger.

import type { WithheldArtifact } from '../../contract/artifact-ref.js';
import type { LedgerProblem } from './ledger-problem.js';

/** Content that was erased, or kept out of a bundle: only its hashes are compared with the entries. */
export interface WithheldSummary {
  readonly contents: number;
  /** Trees that were folded through the machines only up to the first such content. */
  readonly trees: number;
  /** The contents, in the order of the log; at most `NOT_CHECKED_MAX` of them. */
  readonly not_checked: readonly UncheckedContent[];
}

/** One content that could not be checked, by the entry that brought it. */
export interface UncheckedContent extends Pick<WithheldArtifact, 'kind' | 'case_id' | 'withheld' | 'sha256'> {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
}

/** How many contents a verdict lists; the others are counted. */
export const UNCHECKED_LISTED_MAX = 1_000;

/** What was read, where nothing is wrong with it. */
export interface VerifiedEntries {
  /** Those that were looked at. */
  readonly entries: number;
  readonly trees: number;
  readonly root: string;
  /** How many entries come before those; absent where there are none. */
  readonly archived?: number;
}

/**
 * `ok` is true for `verified` alone. `by_hash_alone`: nothing is wrong with what could be checked, and `withheld` lists
 * what could not be, so whether the machines would have decided like that is open (C86).
 */
export type LedgerVerdict =
  | ({ readonly ok: true; readonly verdict: 'verified' } & VerifiedEntries)
  | ({
      readonly ok: false;
      readonly verdict: 'by_hash_alone';
      readonly withheld: WithheldSummary;
      readonly problems: readonly [];
    } & VerifiedEntries)
  | { readonly ok: false; readonly verdict: 'refused'; readonly problems: readonly LedgerProblem[] };

export const refusedVerdict = (problems: readonly LedgerProblem[]): LedgerVerdict => ({
  ok: false,
  verdict: 'refused',
  problems,
});
