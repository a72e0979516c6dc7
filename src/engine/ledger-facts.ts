// Facts that a decision needs of the ledger itself: what earlier steps have done. The feature `conditions` has them; it
// is installed before the first policy that needs them is loaded. An engine whose policies need none has none.

import { InvariantError } from '../core/errors.js';
import { needsLedgerFacts } from '../core/policy/policy-features.js';
import type { Decision } from '../kernel/decision.js';
import type { Tree } from '../kernel/tree.js';
import type { LedgerStore } from './ports/ledger/ledger-store.js';
import type { AppendStatus, QuotaChange, SharedBatch, SharedLedgerStore } from './ports/ledger/shared-store.js';
import type { Submission } from './tree-engine.js';

/** The facts as the ticks of an engine use them. */
export interface LedgerFacts {
  /** Starts a tick: what the previous one has decided is committed or in flight. */
  startTick(): void;
  /** Whether the input has to wait for another tick, with all later inputs of its tree. */
  mustPostpone(tree: Tree, input: Submission['input']): boolean;
  /** Whether `prepare` has to be called before the tree decides about an input. */
  mustPrepare(tree: Tree, input: Submission['input']): boolean;
  /** Reads from the ledger what is needed for that. @throws LedgerError */
  prepare(tree: Tree, input: Submission['input']): Promise<void>;
  /** Adds the facts to an input that needs them. Returns any other submission unchanged. */
  addFacts(tree: Tree, submission: Submission, time: string): Submission;
  /** Applies a decision of any tree. */
  applyDecision(tree: Tree, decision: Decision): void;
  /** The tree has failed: something that was applied is not in the ledger. */
  undo(): void;
  /** The next tick reads the ledger again. */
  clear(): void;
}

/** The facts of one of several workers. The store compares versions of them as it compares those of reservations. */
export interface SharedLedgerFacts extends LedgerFacts {
  /** What the decisions of this tick about a tree depend on and change. Each has an id of `isFactId`. */
  changesOf(tree_id: string): readonly QuotaChange[];
  /**
   * @param all what each append of a batch changes and depends on, also of reservations
   * @returns the same, with further checks for what must be written together or not at all
   */
  joinChecks(all: readonly (readonly QuotaChange[])[]): readonly (readonly QuotaChange[])[];
  /** The batch is being sent: the next tick decides with the versions that it will give. */
  onSent(batch: SharedBatch): void;
  onCommitted(batch: SharedBatch, statuses: readonly AppendStatus[]): void;
}

/** What the facts of the only worker are read from. */
export type FactStore = Pick<LedgerStore, 'log' | 'openTrees' | 'archives'>;
/** What those of one of several workers are read from. */
export type SharedFactStore = FactStore & Pick<SharedLedgerStore, 'tree' | 'pending' | 'caseQuotas'>;

/** What a ledger has of one fact, of all time. */
export interface FactTotal {
  readonly name: string;
  /** Whose steps it is about. */
  readonly key: string;
  readonly total: number;
}

/** What makes facts from a ledger. */
export interface LedgerFactsSource {
  ofOnlyWorker(store: FactStore): LedgerFacts;
  ofSharedWorker(store: SharedFactStore): SharedLedgerFacts;
  /** What the whole ledger has now. @throws LedgerError */
  readTotals(store: FactStore): Promise<readonly FactTotal[]>;
}

/** No id of a case has this character. It is sorted after all of them, so facts are locked after cases. */
export const FACT_ID_PREFIX = '~';
/** Whether a version is that of a fact, and not of the reservations of a case. */
export const isFactId = (case_id: string): boolean => case_id.startsWith(FACT_ID_PREFIX);

let installed: LedgerFactsSource | null = null;

export const installLedgerFacts = (source: LedgerFactsSource): void => {
  installed = source;
};

/** Null if the feature is not installed. */
export const findLedgerFacts = (): LedgerFactsSource | null => installed;

/** The facts of one engine. They are created for the first policy that needs them. */
export class LazyLedgerFacts<Facts extends LedgerFacts = LedgerFacts> {
  readonly #create: (source: LedgerFactsSource) => Facts;
  #created: Facts | null = null;

  constructor(create: (source: LedgerFactsSource) => Facts) {
    this.#create = create;
  }

  /** Null as long as no policy has needed them. */
  get created(): Facts | null {
    return this.#created;
  }

  /** The facts for the decisions of a tree. Null if its policy needs none. */
  for({ policy }: Tree): Facts | null {
    if (policy === null || !needsLedgerFacts(policy)) return null;
    if (installed === null) throw new InvariantError('a policy needs facts of the ledger, and nothing reads them');
    this.#created ??= this.#create(installed);
    return this.#created;
  }
}
