import type { Effect } from '../../contract/run/effect.js';
import type { Decision } from '../../kernel/decision.js';
import { listDecidedChanges, findPendingGather } from '../../kernel/sandbox-changes.js';
import type { Tree } from '../../kernel/tree.js';
import { CaseReservations } from './case-reservations.js';
import type { EffectOutcome } from '../effect-runner.js';
import { withReserved } from '../tick/submissions.js';
import type { Submission } from '../tree-engine.js';

/** Puts the reservations of cases where the engine decides, commits and performs. */
export class QuotaReservations {
  readonly #cases = new CaseReservations();
  /** What trees have reserved in the present tick, which is not committed yet. */
  readonly #uncommitted = new Map<string, string[]>();

  /** How many changes are reserved. */
  get size(): number {
    return this.#cases.size;
  }

  /** A tick begins: what the one before it reserved is committed, or the engine has failed. */
  startTick(): void {
    this.#uncommitted.clear();
  }

  /** Puts to facts about a growing sandbox what others have reserved. Any other submission is answered as it is. */
  addReserved(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (this.#cases.size === 0 || input.kind !== 'facts') return submission;
    const request = findPendingGather(tree, input.run_id);
    if (request === null || !request.usage) return submission;
    return withReserved(submission, this.#cases.computeReserved(request, input.facts));
  }

  /** Reserves for the changes that a decision makes, and releases those of the steps that it ends. */
  applyDecision(tree_id: string, { commands, entries }: Decision): void {
    for (const command of commands) {
      if (command.kind !== 'perform' || command.in_commit || !this.#cases.reserve(command.effect)) continue;
      const { idempotency_key } = command.effect;
      this.#uncommitted.set(tree_id, [...(this.#uncommitted.get(tree_id) ?? []), idempotency_key]);
    }
    if (this.#cases.size === 0) return;
    for (const { entry } of entries) if (entry.type === 'step_trace') this.#cases.releaseStep(entry.body.run_id);
  }

  /** The executor has answered. What was done is in the usage now; what failed may be tried again by its step. */
  onEffectRun({ idempotency_key }: Effect, { status }: EffectOutcome): void {
    if (status === 'done') this.#cases.release(idempotency_key);
  }

  /** What the tree has decided so far is in the batch: it is committed, whatever its next input comes to. */
  join(tree_id: string): void {
    this.#uncommitted.delete(tree_id);
  }

  /** The tree broke in this tick: what it has decided since it joined the batch is not committed. */
  undo(tree_id: string): void {
    for (const key of this.#uncommitted.get(tree_id) ?? []) this.#cases.release(key);
    this.#uncommitted.delete(tree_id);
  }

  /** A tree was folded by recovery: what it has decided to do still counts. */
  restore(tree: Tree): void {
    for (const change of listDecidedChanges(tree)) this.#cases.reserve(change);
  }

  clear(): void {
    this.#cases.clear();
    this.#uncommitted.clear();
  }
}
