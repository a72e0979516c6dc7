import type { Command, Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import type { Lease } from '../ports/ledger/shared-store.js';
import { answersId, isAnsweredInTick } from '../tick/tick-inputs.js';

/** What an append changes in the leases of its worker. */
export interface LeaseChanges {
  readonly taken: readonly Lease[];
  /** Runs whose leases are done. */
  readonly released: readonly string[];
}

/**
 * The run id of the lease to run a command. That of questions to decision points is the id of the input with the
 * answers: a run asks for each of its steps, and the worker may have a lease of its caller too.
 */
export const leaseIdOf = (command: Command): string =>
  command.kind === 'gather' ? answersId(command) : command.run_id;

/**
 * The leases that the decisions of one append give to the committing worker: it runs the effects and asks the
 * decision points that they request, and serves the callers of the runs that they start. A new tree has a caller until
 * its first agent run, or its end.
 * @param tree the tree after all of the decisions
 */
export function leaseChanges(tree: Tree, decisions: readonly Decision[]): LeaseChanges {
  const taken: Lease[] = [];
  /** The store has no leases of these runs. */
  const created = new Set<string>();
  const released = new Set<string>();
  for (const { commands, ended, entries } of decisions) {
    for (const command of commands) {
      if (!isAnsweredInTick(command)) taken.push({ run_id: leaseIdOf(command), kind: 'effect' });
    }
    for (const { entry } of entries) {
      if (entry.type === 'input' && entry.seq === 0) taken.push({ run_id: tree.tree_id, kind: 'caller' });
      if (entry.type === 'input' && entry.body.kind === 'result') released.add(entry.body.run_id);
      if (entry.type === 'input' && entry.body.kind === 'facts') {
        if (entry.body.decisions !== undefined) released.add(entry.body.input_id);
      }
      if (entry.type === 'run_created') created.add(entry.body.run_id);
      if (entry.type !== 'run_created' || entry.body.run_kind !== 'agent') continue;
      const { run_id } = entry.body;
      released.add(tree.tree_id);
      if (tree.run(run_id)?.link === 'attached') taken.push({ run_id, kind: 'caller' });
    }
    for (const { run_id } of ended) released.add(run_id);
  }
  return {
    taken: taken.filter(({ run_id }) => !released.has(run_id)),
    released: [...released].filter((run_id) => !created.has(run_id)),
  };
}
