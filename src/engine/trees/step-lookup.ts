// The recorded steps of proposals. A step may be in flight at any worker, so a tree in memory may not have it yet.

import { isMidStep } from '../../kernel/tree.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';
import type { InputQueue, ParkedInputs } from '../tick/input-queue.js';
import { findCompletedStep, type CompletedStep } from './completed-step.js';
import type { LiveTrees } from './live-trees.js';

interface StepLookupOptions {
  readonly store: Pick<LedgerStore, 'tree' | 'artifactsOf'>;
  readonly queue: Pick<InputQueue, 'runExclusive'>;
  readonly trees: Pick<LiveTrees, 'get'>;
  readonly parked: Pick<ParkedInputs, 'waitForGrowth'>;
  /** Adds to a tree what other workers have appended. */
  readonly refresh: (tree_id: string) => Promise<void>;
  /** Why the engine answers no callers; null if it does. */
  readonly refusal: () => Error | null;
}

/** A step that is recorded or, if it is in flight, what to wait for. */
interface FoundStep {
  readonly step: CompletedStep | null;
  readonly growth: Promise<void> | null;
}

export class StepLookup {
  readonly #options: StepLookupOptions;

  constructor(options: StepLookupOptions) {
    this.#options = options;
  }

  /** As `TreeEngine.findStep`. */
  find(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null> {
    return this.#inspect(() => this.#find(tree_id, run_id, seq));
  }

  /** As `TreeEngine.awaitStep`. */
  async wait(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null> {
    for (;;) {
      const { step, growth } = await this.#inspect(() => this.#findOrWait(tree_id, run_id, seq));
      if (growth === null) return step;
      await growth;
    }
  }

  #inspect<T>(work: () => Promise<T>): Promise<T> {
    const { queue, refusal } = this.#options;
    return queue.runExclusive(async () => {
      const refused = refusal();
      if (refused !== null) throw refused;
      return work();
    });
  }

  async #find(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null> {
    const tree = await this.#options.trees.get(tree_id);
    return tree === null ? null : findCompletedStep(tree, run_id, seq, this.#options.store);
  }

  /** Within `inspect` no entries of the tree arrive, so none can be missed between the check and the wait. */
  async #findOrWait(tree_id: string, run_id: string, seq: number): Promise<FoundStep> {
    const known = await this.#find(tree_id, run_id, seq);
    if (known !== null) return { step: known, growth: null };
    await this.#options.refresh(tree_id);
    const tree = await this.#options.trees.get(tree_id);
    // Read again after the refresh: the step may have ended between the two.
    const step = await this.#find(tree_id, run_id, seq);
    const isPending = step === null && tree !== null && isMidStep(tree, run_id);
    return { step, growth: isPending ? this.#options.parked.waitForGrowth(tree_id) : null };
  }
}
