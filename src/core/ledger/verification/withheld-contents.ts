import { canBeWithheld, type WithheldArtifact } from '../../contract/artifact-ref.js';
import type { StoredEntry } from '../readable-ledger.js';
import type { LedgerFinding } from './ledger-problem.js';
import {
  UNCHECKED_LISTED_MAX,
  type UncheckedContent,
  type UnsupportedTree,
  type WithheldSummary,
} from './ledger-verdict.js';

/** The contents that verification could not check, counted and, up to a limit, listed. */
export class WithheldContents {
  readonly #listed: UncheckedContent[] = [];
  #contents = 0;

  /** @returns a finding if the content is missing and nothing allows that */
  add({ log_index, tree_id, seq }: StoredEntry, artifact: WithheldArtifact): readonly LedgerFinding[] {
    const { kind, case_id, withheld, sha256 } = artifact;
    this.#contents += 1;
    if (this.#listed.length < UNCHECKED_LISTED_MAX) {
      this.#listed.push({ log_index, tree_id, seq, kind, case_id, withheld, sha256 });
    }
    if (canBeWithheld(artifact)) return [];
    const message = `the content ${sha256} (${kind}) is missing, and nothing may withhold it: restore it from a backup`;
    return [{ rule: 'artifact.system_withheld', message }];
  }

  /**
   * @param trees how many trees could be folded only in part
   * @param unsupported those of them that this installation cannot evaluate
   * @returns null if everything could be checked
   */
  report(trees: number, unsupported: readonly UnsupportedTree[]): WithheldSummary | null {
    if (this.#contents === 0 && unsupported.length === 0) return null;
    const summary = { contents: this.#contents, trees, not_checked: this.#listed };
    return unsupported.length === 0 ? summary : { ...summary, unsupported: unsupported.slice(0, UNCHECKED_LISTED_MAX) };
  }
}
