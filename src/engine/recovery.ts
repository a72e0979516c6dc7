// Recovery completes in the ledger the work that a start or restart finds unfinished, before new work begins (D3, D8,
// C35).
//
//   R1. Recovery folds only trees with unfinished work, which the store lists. For each other tree the store knows the
//       earliest time of its timers, and the tree is folded then.
//   R2. It settles trees concurrently, a bounded number at a time: one query reads them, and one commit takes a tick.
//   R3. Work that shares its commit with record rows is settled alone, so that no other tree's commit includes the
//       rows.

import { InvariantError } from '../core/errors.js';
import type { Command } from '../kernel/decision.js';
import type { Tree } from '../kernel/tree.js';
import { isUnfoldable } from './failures.js';
import { EffectRunner } from './effect-runner.js';
import { factsSubmission, resultSubmission, unansweredSubmission } from './tick/tick-inputs.js';
import type { EngineParts, Recovery, Submission, TreeEngine } from './tree-engine.js';
import { isAbandoned, liveAgents } from './trees/live-trees.js';

/** Maximum number of trees that are settled concurrently. */
export const TREES_AT_ONCE = 64;

/** The engine as recovery uses it. It accepts no other inputs meanwhile. */
export interface RecoveringEngine extends Pick<TreeEngine, 'submit' | 'peek'> {
  /** Folds trees into memory; skips those that do not fold. */
  load(tree_ids: readonly string[]): Promise<void>;
  /** Reserves quota for the changes that the tree has decided to make in a sandbox. */
  reserve(tree: Tree): void;
  /** Sets the timers of a folded tree. */
  arm(tree: Tree): void;
  /** Folds a tree at time `at` and then sets its timers. */
  armLater(tree_id: string, at: number): void;
}

type RecoveryParts = Pick<EngineParts, 'store' | 'effects' | 'log' | 'liveTreesMax'>;

/**
 * Settles every intent without an outcome, ends the runs whose caller is gone, and sets the timers of the others.
 * @throws LedgerError if the ledger cannot be written or read
 */
export async function recover(engine: RecoveringEngine, parts: RecoveryParts): Promise<Recovery> {
  const unfinished: string[] = [];
  let trees = 0;
  for await (const tree of parts.store.openTrees()) {
    trees += 1;
    if (tree.unfinished) unfinished.push(tree.tree_id);
    else if (tree.wake_at !== null) engine.armLater(tree.tree_id, Date.parse(tree.wake_at));
  }
  const work = new RecoveryWork(engine, parts);
  const atOnce = Math.max(1, Math.min(TREES_AT_ONCE, parts.liveTreesMax ?? TREES_AT_ONCE));
  for (let from = 0; from < unfinished.length; from += atOnce) {
    await work.recoverAll(unfinished.slice(from, from + atOnce));
  }
  const recovery = { trees, ...work.counts };
  const { log } = parts;
  if (recovery.settled + recovery.interrupted > 0) log.warn('recovered unfinished run trees', recovery);
  else if (trees > 0) log.info('took up live run trees', recovery);
  return recovery;
}

class RecoveryWork {
  readonly counts = { settled: 0, interrupted: 0, damaged: 0 };
  readonly #engine: RecoveringEngine;
  readonly #parts: RecoveryParts;
  readonly #effectRunner: EffectRunner;

  constructor(engine: RecoveringEngine, parts: RecoveryParts) {
    this.#engine = engine;
    this.#parts = parts;
    this.#effectRunner = new EffectRunner(parts.effects);
  }

  async recoverAll(tree_ids: readonly string[]): Promise<void> {
    await this.#engine.load(tree_ids);
    const sequential: string[] = [];
    const done = tree_ids.map((tree_id) =>
      this.#runGuarded(tree_id, async () => {
        const tree = await this.#requireTree(tree_id);
        this.#engine.reserve(tree);
        if (tree.pending.some(hasSharedCommit)) sequential.push(tree_id);
        else await this.#recover(tree);
      }),
    );
    await waitForAll(done);
    for (const tree_id of sequential)
      await this.#runGuarded(tree_id, async () => this.#recover(await this.#requireTree(tree_id)));
  }

  /** A tree that does not fold must not block the others. It stays unusable itself. */
  async #runGuarded(tree_id: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isUnfoldable(error)) throw error;
      this.#parts.log.error('a run tree cannot be taken up again', { tree_id, error });
      this.counts.damaged += 1;
    }
  }

  async #recover(tree: Tree): Promise<void> {
    const settled = await this.#settle(tree);
    this.counts.settled += settled;
    const interrupted = await this.#interrupt(await this.#requireTree(tree.tree_id));
    this.counts.interrupted += interrupted;
  }

  /** Decision points are not asked again: that could delay the start without limit. The step is denied. */
  #gather(command: Extract<Command, { kind: 'gather' }>): Submission {
    const { request } = command;
    return request.decisions === undefined
      ? factsSubmission(command, this.#effectRunner.gather(request))
      : unansweredSubmission(command);
  }

  async #settle(tree: Tree): Promise<number> {
    const { effects, log } = this.#parts;
    let settled = 0;
    for (const command of tree.pending) {
      if (command.kind === 'gather') {
        await this.#engine.submit(tree.tree_id, this.#gather(command));
        continue;
      }
      const { effect } = command;
      // Only a process with the tool or table can find out; in any other process the effect stays pending.
      if (!effects.canRun(effect)) {
        const { run_id } = effect;
        log.warn('an action is left unsettled: this process does not have its tool or table', { run_id });
        continue;
      }
      // A read changes nothing, so it runs again. For a change, find out whether it has happened.
      const result = command.in_commit
        ? await this.#effectRunner.run(effect, true)
        : await this.#effectRunner.settle(effect);
      if (result.status === 'unknown') log.error('the outcome of an action is unknown', { run_id: effect.run_id });
      await this.#engine.submit(tree.tree_id, resultSubmission(effect, result, true));
      settled += 1;
    }
    return settled;
  }

  async #interrupt(tree: Tree): Promise<number> {
    const { tree_id } = tree;
    const agents = liveAgents(tree);
    const attached = agents.filter(({ link }) => link === 'attached');
    for (const { context } of attached) {
      const input = { kind: 'interrupt', run_id: context.run_id, input_id: `${context.run_id}/interrupt` } as const;
      await this.#engine.submit(tree_id, { input, materials: [], rememberInputId: false });
    }
    if (agents.length === 0 && isAbandoned(tree)) {
      const input_id = `${tree_id}/abandoned`;
      const input = { kind: 'cancel', run_id: tree_id, input_id, reason: 'interrupted' } as const;
      await this.#engine.submit(tree_id, { input, materials: [], rememberInputId: false });
    }
    this.#engine.arm(tree);
    return attached.length;
  }

  async #requireTree(tree_id: string): Promise<Tree> {
    const tree = await this.#engine.peek(tree_id);
    if (tree === null) throw new InvariantError(`the store lists a tree that it does not have: ${tree_id}`);
    return tree;
  }
}

/** R3. */
const hasSharedCommit = (command: Tree['pending'][number]): boolean => command.kind === 'perform' && command.in_commit;

/** Waits for all of it before it throws: a failed recovery leaves no work in flight. */
export async function waitForAll(work: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) if (result.status === 'rejected') throw result.reason;
}
