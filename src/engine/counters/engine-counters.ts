// The counters of an engine, as its ticks use them.

import type { Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import type { Submission } from '../tree-engine.js';

export interface EngineCounters {
  /** Starts a tick: what the previous one has decided is committed or in flight. */
  startTick(): void;
  /** Whether the input has to wait for another tick, with all later inputs of its tree. */
  mustPostpone(tree: Tree, input: Submission['input']): boolean;
  /** Whether `prepare` has to be called before the tree decides about an input. */
  mustPrepare(tree: Tree, input: Submission['input']): boolean;
  /** Loads the counters for that. @throws LedgerError */
  prepare(tree: Tree, input: Submission['input']): Promise<void>;
  /** Adds the values of counters to the facts that need them. Returns any other submission unchanged. */
  addFacts(tree: Tree, submission: Submission, time: string): Submission;
  applyDecision(tree: Tree, decision: Decision): void;
  /** The tree has failed: something that was applied is not in the ledger. */
  undo(): void;
  /** The next tick loads the counters again. */
  clear(): void;
}
