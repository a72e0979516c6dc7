// What a start or restart finds unfinished is brought to an end, in the ledger, before anything new begins
// (D3, D8, C35).

import { InvariantError, LedgerError } from '../errors.js';
import type { Tree } from '../kernel/tree.js';
import { Hands } from './hands.js';
import { factsSubmission, resultSubmission } from './submissions.js';
import type { EngineParts, Recovery, TreeEngine } from './tree-engine.js';

/** What recovery uses of its engine, which takes inputs of nothing else meanwhile. */
export interface RecoveringEngine extends Pick<TreeEngine, 'submit' | 'peek'> {
  /** Sets the timers of a tree that was folded. */
  arm(tree: Tree): void;
}

/**
 * Settles every intent that has no outcome, ends the runs whose caller is gone, and winds up the timers of the others.
 */
export async function recover(
  engine: RecoveringEngine,
  { store, effects, log }: Pick<EngineParts, 'store' | 'effects' | 'log'>,
): Promise<Recovery> {
  const open: string[] = [];
  for await (const { tree_id, ended } of store.trees()) if (!ended) open.push(tree_id);
  let settled = 0;
  let interrupted = 0;
  let damaged = 0;
  for (const tree_id of open) {
    try {
      settled += await settle(engine, await known(engine, tree_id), { effects, log });
      interrupted += await interrupt(engine, await known(engine, tree_id));
    } catch (error) {
      // One tree that does not fold must not keep all the others shut. It stays shut itself: nothing can move it.
      if (!(error instanceof LedgerError) || !UNFOLDABLE.has(error.code)) throw error;
      log.error('a run tree cannot be taken up again', { tree_id, error });
      damaged += 1;
    }
  }
  const recovery = { trees: open.length, settled, interrupted, damaged };
  if (settled + interrupted > 0) log.warn('recovered unfinished run trees', recovery);
  else if (open.length > 0) log.info('took up live run trees', recovery);
  return recovery;
}

/** Erased too: the ledger may be an older copy, from when the tree lived, beside the keys of now. */
const UNFOLDABLE: ReadonlySet<string> = new Set(['LEDGER_TAMPERED', 'LEDGER_ERASED']);

type Settling = Pick<EngineParts, 'effects' | 'log'>;

async function settle(engine: RecoveringEngine, tree: Tree, { effects, log }: Settling): Promise<number> {
  const hands = new Hands(effects);
  let settled = 0;
  for (const command of tree.pending) {
    if (command.kind === 'gather') {
      await engine.submit(tree.tree_id, factsSubmission(command, hands.gather(command.request)));
      continue;
    }
    const { effect } = command;
    // Only the service that has the tool or table can find out; for whoever else opens the home it stays pending.
    if (effects.knows?.(effect) === false) {
      log.warn('an action is left unsettled: this process does not have its tool or table', { run_id: effect.run_id });
      continue;
    }
    // A read changes nothing and is done again; of a change it must be found out whether it has happened.
    const result = command.in_commit ? await hands.perform(effect, true) : await hands.settle(effect);
    if (result.status === 'unknown') log.error('the outcome of an action is unknown', { run_id: effect.run_id });
    await engine.submit(tree.tree_id, resultSubmission(effect, result, true));
    settled += 1;
  }
  return settled;
}

async function interrupt(engine: RecoveringEngine, tree: Tree): Promise<number> {
  const agents = tree.runs.filter(({ context }) => context.run_kind === 'agent' && tree.isLive(context.run_id));
  const attached = agents.filter(({ link }) => link === 'attached');
  for (const { context } of attached) {
    const input = { kind: 'interrupt', run_id: context.run_id, input_id: `${context.run_id}/interrupt` } as const;
    await engine.submit(tree.tree_id, { input, materials: [], external: false });
  }
  // A promotion or export may wait for people, for days, and a session for its agent.
  if (agents.length === 0 && !tree.ended && tree.awaiting.length === 0 && tree.session === null) {
    const { tree_id } = tree;
    const input = { kind: 'cancel', run_id: tree_id, input_id: `${tree_id}/abandoned`, reason: 'interrupted' } as const;
    await engine.submit(tree_id, { input, materials: [], external: false });
  }
  engine.arm(tree);
  return attached.length;
}

async function known(engine: RecoveringEngine, tree_id: string): Promise<Tree> {
  const tree = await engine.peek(tree_id);
  if (tree === null) throw new InvariantError(`the store lists a tree that it does not have: ${tree_id}`);
  return tree;
}
