import type { Effect } from '../../contract/run/effect.js';
import type { Decision } from '../../kernel/decision.js';
import { listDecidedChanges, findPendingGather } from '../../kernel/sandbox-changes.js';
import type { Tree } from '../../kernel/tree.js';
import { CaseReservations } from './case-reservations.js';
import type { EffectOutcome } from '../effect-runner.js';
import { withReserved } from '../tick/submissions.js';
import type { Submission } from '../tree-engine.js';

/** Updates the reservations of cases as the engine decides, commits and runs effects. */
export class QuotaReservations {
  readonly #cases = new CaseReservations();
  /** Keys reserved in the current tick, by tree; they are not committed yet. */
  readonly #uncommitted = new Map<string, string[]>();

  /** Number of reserved changes. */
  get size(): number {
    return this.#cases.size;
  }

  /** Starts a tick: the reservations of the previous one are committed, or the engine has failed. */
  startTick(): void {
    this.#uncommitted.clear();
  }

  /** Adds the reservations of others to facts that a quota is compared with. Returns any other submission unchanged. */
  addReserved(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (this.#cases.size === 0 || input.kind !== 'facts') return submission;
    const request = findPendingGather(tree, input.run_id);
    if (request === null || !request.usage) return submission;
    return withReserved(submission, this.#cases.computeReserved(request, input.facts));
  }

  /** Reserves for the changes of a decision, and releases those of the steps that it ends. */
  applyDecision(tree_id: string, { commands, entries }: Decision): void {
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

  /** Keeps the tree's reservations so far: they are in the batch, whatever happens to its next input. */
  join(tree_id: string): void {
    this.#uncommitted.delete(tree_id);
  }

  /** Releases what the tree reserved since it last joined the batch, because the tree has failed. */
  undo(tree_id: string): void {
    for (const key of this.#uncommitted.get(tree_id) ?? []) this.#cases.release(key);
    this.#uncommitted.delete(tree_id);
  }

  /** Releases everything that the tree has reserved: its memory differs from the ledger. */
  forget(tree_id: string): void {
    this.#cases.releaseTree(tree_id);
    this.#uncommitted.delete(tree_id);
  }

  /** Reserves again for the decided changes of a tree that recovery has folded. */
  restore(tree: Tree): void {
    for (const change of listDecidedChanges(tree)) this.#cases.reserve(change);
  }

  clear(): void {
    this.#cases.clear();
    this.#uncommitted.clear();
  }
}
