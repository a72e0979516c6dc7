import type { Effect } from '../../core/contract/run/effect.js';
import type { Decision } from '../../kernel/decision.js';
import { type Tree, listDecidedChanges, findPendingGather } from '../../kernel/tree.js';
import { CaseReservations } from './case-reservations.js';
import type { EffectOutcome } from '../effect-runner.js';
import { withReserved } from '../tick/submissions.js';
import type { Submission } from '../tree-engine.js';

/** The reservations of cases, as the engine decides, commits and runs effects. */
export interface Reservations {
  /** Number of reserved changes. */
  readonly size: number;
  /** Starts a tick: the reservations of the previous one are committed, or the engine has failed. */
  startTick(): void;
  /** Adds the reservations of others to facts that a quota is compared with. Returns any other submission unchanged. */
  addReserved(tree: Tree, submission: Submission): Submission;
  /** Reserves for the changes of a decision, and releases those of the steps that it ends. */
  applyDecision(tree: Tree, decision: Decision): void;
  onEffectRun(effect: Effect, outcome: EffectOutcome): void;
  /** Keeps the tree's reservations so far: they are in the batch, whatever happens to its next input. */
  join(tree_id: string): void;
  /** Releases what the tree reserved since it last joined the batch, because the tree has failed. */
  undo(tree_id: string): void;
  /** Releases everything that the tree has reserved: its memory differs from the ledger. */
  forget(tree_id: string): void;
  /** Reserves again for the decided changes of a tree that recovery has folded. */
  restore(tree: Tree): void;
  clear(): void;
}

/** The reservations of the only worker, in memory. */
export class QuotaReservations implements Reservations {
  readonly #cases = new CaseReservations();
  /** Keys reserved in the current tick, by tree; they are not committed yet. */
  readonly #uncommitted = new Map<string, string[]>();

  get size(): number {
    return this.#cases.size;
  }

  startTick(): void {
    this.#uncommitted.clear();
  }

  addReserved(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (this.#cases.size === 0 || input.kind !== 'facts') return submission;
    const request = findPendingGather(tree, input.run_id);
    if (request === null || !request.usage) return submission;
    return withReserved(submission, this.#cases.computeReserved(request, input.facts));
  }

  applyDecision({ tree_id }: Tree, { commands, entries }: Decision): void {
    for (const command of commands) {
      if (command.kind !== 'perform' || command.in_commit || !this.#cases.reserve(command.effect)) continue;
      const { idempotency_key } = command.effect;
      this.#uncommitted.set(tree_id, [...(this.#uncommitted.get(tree_id) ?? []), idempotency_key]);
    }
    if (this.#cases.size === 0) return;
    for (const { entry } of entries) if (entry.type === 'step_trace') this.#cases.releaseStep(entry.body.run_id);
  }

  /**
   * Releases a completed change, which the usage now includes. A failed one stays reserved, because its step may retry
   * it.
   */
  onEffectRun({ idempotency_key }: Effect, { status }: EffectOutcome): void {
    if (status === 'done') this.#cases.release(idempotency_key);
  }

  join(tree_id: string): void {
    this.#uncommitted.delete(tree_id);
  }

  undo(tree_id: string): void {
    for (const key of this.#uncommitted.get(tree_id) ?? []) this.#cases.release(key);
    this.#uncommitted.delete(tree_id);
  }

  forget(tree_id: string): void {
    this.#cases.releaseTree(tree_id);
    this.#uncommitted.delete(tree_id);
  }

  restore(tree: Tree): void {
    for (const change of listDecidedChanges(tree)) this.#cases.reserve(change);
  }

  clear(): void {
    this.#cases.clear();
    this.#uncommitted.clear();
  }
}
