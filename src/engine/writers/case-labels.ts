// Which appends may raise the label of their case: the join of the labels of everything that its runs have read.
//
//   L1. A worker remembers for each case a label for which it has raised the version. An append whose runs have read
//       nothing above it raises nothing, so few commits lock the row of their case.
//   L2. If the label of a read is not known here, the append counts as raising: a version too many costs one repeated
//       computation.

import type { Label } from '../../core/contract/policy/labels.js';
import type { Decision } from '../../kernel/decision.js';
import { labelAfter } from '../../kernel/label-after.js';
import type { Tree } from '../../kernel/tree.js';
import type { CaseLabelChange } from '../ports/ledger/shared-store.js';
import type { CaseLabelVersion } from '../tree-engine.js';

/** Maximum cases that are remembered. */
const CASES_MAX = 4_096;

export class CaseLabels {
  readonly #raised = new Map<string, Label>();
  /** The labels after the appends, as far as they are known. */
  readonly #labels = new WeakMap<CaseLabelChange, Label>();

  /**
   * @param tree the tree after all of the decisions of the append
   * @param contained the label that the append contains, or null
   */
  changeOf(tree: Tree, decisions: readonly Decision[], contained: CaseLabelVersion | null): CaseLabelChange | null {
    const case_id = contained?.case_id ?? tree.case_id;
    if (case_id === null) return null;
    const raised = this.#raised.get(case_id) ?? null;
    const label = labelAfter(tree, decisions, raised);
    const isRaised = label === null || (label !== raised && hasOrigin(label));
    if (!isRaised && contained === null) return null;
    const change = { case_id, version: contained?.version ?? null, isRaised };
    if (label !== null) this.#labels.set(change, label);
    return change;
  }

  /** The append with this change was committed. */
  onCommitted(change: CaseLabelChange): void {
    const label = this.#labels.get(change);
    if (label === undefined) return;
    if (this.#raised.size >= CASES_MAX) this.#raised.clear();
    this.#raised.set(change.case_id, label);
  }
}

/** Whether it is not the label of data without an origin. */
const hasOrigin = ({ cases, flags, many }: Label): boolean => cases.length > 0 || flags.length > 0 || many;
