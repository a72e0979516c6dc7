import type { Tree } from '../../kernel/tree.js';
import type { ClaimedLease, SharedLedgerStore, Lease } from '../ports/ledger/shared-store.js';
import { EffectRunner, type EffectOutcome } from '../effect-runner.js';
import { isUnsupported } from '../../kernel/pinned-policy.js';
import { isUnfoldable } from '../failures.js';
import { TREES_AT_ONCE, waitForAll, type RecoveringEngine } from '../recovery.js';
import type { SharedEngineAccess } from './ledger-writer.js';
import { isAnsweredInTick, resultSubmission, unansweredSubmission, answersId } from '../tick/tick-inputs.js';
import { isAbandoned, liveAgents } from '../trees/live-trees.js';
import type { EngineParts, Recovery } from '../tree-engine.js';
import type { Command, Decision } from '../../kernel/decision.js';

/** Maximum leases that one round settles. */
const LEASES_MAX = 1_024;

/** Does what workers that are gone have left undone: settles their effects, and ends the runs whose caller is gone. */
export class LeaseSettler {
  readonly #store: SharedLedgerStore;
  readonly #parts: Pick<EngineParts, 'effects' | 'log'>;
  readonly #graceMs: number;
  readonly #effectRunner: EffectRunner;
  /** Effects that this process cannot settle, because it does not have their tool or table. */
  readonly #reported = new Set<string>();
  #counts = { trees: 0, settled: 0, interrupted: 0, damaged: 0 };

  constructor(store: SharedLedgerStore, parts: Pick<EngineParts, 'effects' | 'log'>, graceMs: number) {
    this.#store = store;
    this.#parts = parts;
    this.#graceMs = graceMs;
    this.#effectRunner = new EffectRunner(parts.effects);
  }

  /** Settles every lease that can be claimed now. @throws LedgerError if the ledger cannot be read or written */
  async settleAll(engine: RecoveringEngine & Pick<SharedEngineAccess, 'laterTrees'>): Promise<Recovery> {
    this.#counts = { trees: 0, settled: 0, interrupted: 0, damaged: 0 };
    const trees = new Map<string, ClaimedLease[]>();
    for (const lease of await this.#store.claimLeases(this.#graceMs, LEASES_MAX, engine.laterTrees())) {
      trees.set(lease.tree_id, [...(trees.get(lease.tree_id) ?? []), lease]);
    }
    const all = [...trees];
    for (let from = 0; from < all.length; from += TREES_AT_ONCE) {
      const some = all.slice(from, from + TREES_AT_ONCE);
      await engine.load(some.map(([tree_id]) => tree_id));
      await waitForAll(some.map(([tree_id, leases]) => this.#settleGuarded(engine, tree_id, leases)));
    }
    if (this.#counts.settled + this.#counts.interrupted > 0)
      this.#parts.log.warn('settled the leases of workers that are gone', this.#counts);
    return this.#counts;
  }

  /** A tree that does not fold must not block the others. A worker of a later version may be able to fold it. */
  async #settleGuarded(engine: RecoveringEngine, tree_id: string, leases: readonly ClaimedLease[]): Promise<void> {
    try {
      await this.#settleTree(engine, tree_id, leases);
    } catch (error) {
      if (!isUnfoldable(error)) throw error;
      this.#parts.log.error('a run tree cannot be taken up again', { tree_id, error });
      this.#counts.damaged += 1;
      if (isUnsupported(error)) await this.#store.returnLeases(leases);
    }
  }

  async #settleTree(engine: RecoveringEngine, tree_id: string, leases: readonly ClaimedLease[]): Promise<void> {
    const tree = await engine.peek(tree_id);
    if (tree === null) return this.#store.releaseLeases(leases);
    this.#counts.trees += 1;
    const done: ClaimedLease[] = [];
    for (const lease of leases) {
      const isDone = lease.kind === 'effect' ? await this.#settleEffect(engine, tree, lease) : null;
      if (isDone ?? (await this.#endCaller(engine, tree_id, lease))) done.push(lease);
    }
    const after = await engine.peek(tree_id);
    if (after !== null && !after.hasEnded) engine.arm(after);
    await this.#store.releaseLeases(done);
  }

  /** @returns whether the lease is done */
  async #settleEffect(engine: RecoveringEngine, tree: Tree, { run_id, isDead }: ClaimedLease): Promise<boolean> {
    const command = tree.pending.find((pending) => !isAnsweredInTick(pending) && leaseIdOf(pending) === run_id);
    if (command === undefined) return true;
    if (command.kind === 'gather') {
      await engine.submit(tree.tree_id, unansweredSubmission(command));
      this.#counts.settled += 1;
      return true;
    }
    const { effect } = command;
    if (!this.#parts.effects.canRun(effect)) {
      if (!this.#reported.has(run_id))
        this.#parts.log.warn('an action is left unsettled: this process does not have its tool or table', { run_id });
      this.#reported.add(run_id);
      return false;
    }
    const outcome = withoutProof(await this.#effectRunner.settle(effect), isDead);
    if (outcome.status === 'unknown') this.#parts.log.error('the outcome of an action is unknown', { run_id });
    await engine.submit(tree.tree_id, resultSubmission(effect, outcome, true));
    this.#counts.settled += 1;
    return true;
  }

  /** @returns whether the lease is done */
  async #endCaller(engine: RecoveringEngine, tree_id: string, { run_id }: ClaimedLease): Promise<boolean> {
    const tree = await engine.peek(tree_id);
    if (tree === null || tree.hasEnded) return true;
    const agents = liveAgents(tree);
    if (run_id !== tree_id) {
      const agent = agents.find(({ context }) => context.run_id === run_id);
      if (agent?.link !== 'attached') return true;
      const input = { kind: 'interrupt', run_id, input_id: `${run_id}/interrupt` } as const;
      await engine.submit(tree_id, { input, materials: [], rememberInputId: false });
      this.#counts.interrupted += 1;
      return true;
    }
    if (agents.length > 0 || !isAbandoned(tree)) return true;
    const input = { kind: 'cancel', run_id, input_id: `${run_id}/abandoned`, reason: 'interrupted' } as const;
    await engine.submit(tree_id, { input, materials: [], rememberInputId: false });
    return true;
  }
}

/** An effect without a trace may still happen if its worker is only cut off: its outcome is unknown. */
const withoutProof = (outcome: EffectOutcome, isDead: boolean): EffectOutcome =>
  !isDead && outcome.status === 'failed' && outcome.cause === 'INTERRUPTED' ? { status: 'unknown' } : outcome;

/** What an append changes in the leases of its worker. */
interface LeaseChanges {
  readonly taken: readonly Lease[];
  /** Runs whose leases are done. */
  readonly released: readonly string[];
}

/**
 * The run id of the lease to run a command. That of questions to decision points is the id of the input with the
 * answers: a run asks for each of its steps, and the worker may have a lease of its caller too.
 */
const leaseIdOf = (command: Command): string => (command.kind === 'gather' ? answersId(command) : command.run_id);

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
