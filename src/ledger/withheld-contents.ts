import { canBeWithheld, type WithheldArtifact } from '../contract/artifact-ref.js';
import type { StoredEntry } from '../ports/ledger-store.js';
import type { Finding } from './ledger-problem.js';
import { NOT_CHECKED_MAX, type NotChecked, type Withheld } from './verdict.js';

/** The contents that verification could not check, counted and, up to a limit, listed. */
export class WithheldContents {
  readonly #listed: NotChecked[] = [];
  #contents = 0;

  /** @returns a finding where content is missing that nothing may withhold */
  note({ log_index, tree_id, seq }: StoredEntry, artifact: WithheldArtifact): readonly Finding[] {
    const { kind, case_id, withheld, sha256 } = artifact;
    this.#contents += 1;
    if (this.#listed.length < NOT_CHECKED_MAX) {
      this.#listed.push({ log_index, tree_id, seq, kind, case_id, withheld, sha256 });
    }
    if (canBeWithheld(artifact)) return [];
    const message = `the content ${sha256} (${kind}) is missing, and nothing may withhold it: restore it from a backup`;
    return [{ rule: 'artifact.system_withheld', message }];
  }

  /** @param trees how many trees could be folded only in part @returns null where nothing was noted */
  report(trees: number): Withheld | null {
    return this.#contents === 0 ? null : { contents: this.#contents, trees, not_checked: this.#listed };
  }
}
