// The result of verifying a ledger.

import type { WithheldArtifact } from '../../contract/artifact-ref.js';
import type { LedgerProblem } from './ledger-problem.js';

/**
 * What could not be checked: content that was erased, or left out of a bundle, of which only the hashes are compared
 * with the entries; and trees that this installation cannot evaluate.
 */
export interface WithheldSummary {
  readonly contents: number;
  /** Trees that were folded only in part. */
  readonly trees: number;
  /** The contents, in log order; at most `UNCHECKED_LISTED_MAX` of them. */
  readonly not_checked: readonly UncheckedContent[];
  /**
   * Trees that this installation cannot evaluate, in log order; at most `UNCHECKED_LISTED_MAX` of them. Absent if all
   * could be evaluated.
   */
  readonly unsupported?: readonly UnsupportedTree[];
}

/** A tree whose decisions could not be checked, because this installation cannot evaluate its policy. */
export interface UnsupportedTree {
  readonly tree_id: string;
  /** Its first entry. */
  readonly log_index: number;
  /** Why, and what to install. */
  readonly needs: string;
}

/** One content that could not be checked, with the entry that it belongs to. */
export interface UncheckedContent extends Pick<WithheldArtifact, 'kind' | 'case_id' | 'withheld' | 'sha256'> {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
}

/** How many contents, and how many trees, a verdict lists; it only counts the others. */
export const UNCHECKED_LISTED_MAX = 1_000;

/** The verified entries, if the ledger has no problem. */
export interface VerifiedEntries {
  /** The entries that were checked. */
  readonly entries: number;
  readonly trees: number;
  readonly root: string;
  /** How many archived entries precede them and were not checked; absent if none do. */
  readonly archived?: number;
}

/**
 * `ok` is true only for `verified`. `by_hash_alone` means: everything that could be checked is correct, and `withheld`
 * and `archived` say what could not be checked. Whether the machines would have decided the same is then unknown (C86).
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
