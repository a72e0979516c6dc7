// One tick: the inputs that share a transaction, from the lookup of their ids to the finished batch. E2 and E4 are
// invariants of ledger-engine.ts.
//
//   T1. Inputs of different trees advance together: all decide, then all effects answer, then all decide again.
//       Deciding and reading files evict each other from the processor's caches, so they alternate rarely.
//   T2. The inputs of one tree run one after another: the next begins when the previous is complete.
//   T3. An input on which its tree fails leaves nothing in the batch, and the tree is dropped (E4). Later inputs of the
//       same tree wait for the next tick.
//   T4. If a tree fails after records were written in this transaction, the whole transaction is lost, because its own
//       records cannot be separated. The engine then stops (E2).
//   T5. If other workers write to the same trees, marks are looked up after the tree was read. A mark that another
//       worker adds later comes with entries, so the commit of this tick finds that it was overtaken. An input whose
//       tree is found only after the marks were looked up waits for the next tick.
//   T6. An input that needs facts of the ledger which cannot be read yet waits for the next tick, with all later inputs
//       of its tree.

import { isOpeningInput } from '../../core/contract/run/entry.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import { InvariantError } from '../../core/errors.js';
import { needsLedgerFacts } from '../../core/policy/policy-features.js';
import type { Command, Decision, TreeInput } from '../../kernel/decision.js';
import { type Tree, findFactsRequest, isMidStep } from '../../kernel/tree.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';
import type { OverlaySource } from '../ports/policy-sources.js';
import type { Secrets } from '../../core/contract/secrets.js';
import { BatchBuilder } from './batch-builder.js';
import {
  MarkLookup,
  completeInput,
  toRecordedOverlay,
  factsSubmission,
  isAnsweredInTick,
  resultSubmission,
  withTimestamp,
} from './tick-inputs.js';
import type { EffectRunner } from '../effect-runner.js';
import type { LazyLedgerFacts, LedgerFacts } from '../ledger-facts.js';
import type { ParkedInputs } from './input-queue.js';
import type { LiveTrees } from '../trees/live-trees.js';
import type { Reservations } from '../reservations/quota-reservations.js';
import { unknownTreeError } from '../engine-errors.js';
import type { InputOutcome, QueuedInput } from './input-outcome.js';
import type { ObservedInput, TickObserver } from './tick-observer.js';
import type { Submission } from '../tree-engine.js';
import type { Clock } from '../ports/clock.js';

export interface TickOptions {
  readonly store: LedgerStore;
  readonly trees: LiveTrees;
  readonly effectRunner: EffectRunner;
  readonly reservations: Reservations;
  readonly ledgerFacts: Readonly<LazyLedgerFacts>;
  readonly secrets: Secrets;
  readonly timestamps: Timestamps;
  /** The emergency overlay (D1). */
  readonly overlay: OverlaySource | undefined;
  /** Whether other workers write to the same trees. */
  readonly sharesTrees: boolean;
  /** Keeps a proposal until the current step of its run has ended. Null: it is refused at once (S3-21). */
  readonly parked: ParkedInputs | null;
  readonly observer: TickObserver | undefined;
}

/** An input that is being decided, and the reads that its tree still needs. */
interface InputTurn {
  readonly item: QueuedInput;
  readonly tree: Tree;
  readonly outcome: InputOutcome;
  pendingCommands: readonly Command[];
  answers: readonly Submission[];
}

export class Tick {
  readonly items: readonly QueuedInput[];
  /** The trees of its inputs. */
  readonly tree_ids: readonly string[];
  readonly batch = new BatchBuilder();
  readonly outcomes: InputOutcome[] = [];
  /** Inputs for the next tick. */
  readonly postponed: QueuedInput[] = [];
  readonly #options: TickOptions;
  readonly #marks: MarkLookup;
  readonly #broken = new Set<string>();
  /** Trees whose inputs wait for the next tick (T5, T6). */
  readonly #waiting = new Set<string>();
  /** Trees that this tick opens. */
  readonly #opened = new Set<string>();
  /** T5: trees that were not found before the marks were looked up. */
  readonly #absent = new Set<string>();
  #overlay: { readonly fact: OverlayFact | null } | null = null;
  #turns = new Map<string, InputTurn>();
  readonly #startedAt: number;
  #decidedAt = 0;
  #committedAt = 0;

  constructor(options: TickOptions, items: readonly QueuedInput[]) {
    this.#options = options;
    this.items = items;
    this.tree_ids = [...new Set(items.map(({ tree_id }) => tree_id))];
    this.#startedAt = this.#measuredNow();
    options.reservations.startTick();
    options.ledgerFacts.created?.startTick();
    this.#marks = new MarkLookup(options.store, options.trees);
  }

  /** Looks up the ids of all inputs: was any of them used before? */
  async lookUp(): Promise<void> {
    const { sharesTrees, trees } = this.#options;
    // T5.
    if (sharesTrees) {
      await trees.load(this.tree_ids);
      for (const tree_id of this.tree_ids) if (trees.peek(tree_id) === null) this.#absent.add(tree_id);
    }
    await this.#marks.lookUpAll(this.items);
  }

  /** Decides all inputs. What they decide is in `batch` and `outcomes`. */
  async decide(): Promise<void> {
    for (const item of this.items) {
      if (this.#turns.has(item.tree_id)) this.#finish();
      if (this.#broken.has(item.tree_id) || this.#waiting.has(item.tree_id)) this.postponed.push(item);
      else await this.#decideInput(item).catch((error: unknown) => this.#rejectBroken(item, error));
    }
    this.#finish();
    this.#decidedAt = this.#measuredNow();
  }

  markCommitted(): void {
    this.#committedAt = this.#measuredNow();
  }

  /** Reports these outcomes to the observer, if there is one. They are durable. */
  report(outcomes: readonly ObservedInput[]): void {
    const { observer, trees } = this.#options;
    const [startedAt, decidedAt, committedAt] = [this.#startedAt, this.#decidedAt, this.#committedAt];
    observer?.onTick({ outcomes, startedAt, decidedAt, committedAt, tree: trees.peek });
  }

  /** The time by the clock of the observer, in ms; 0 without one. */
  #measuredNow(): number {
    return this.#options.observer?.now() ?? 0;
  }

  /** A tree of this tick, with its decisions. @throws InvariantError for any other tree */
  tree(tree_id: string): Tree {
    const tree = this.#options.trees.peek(tree_id);
    if (tree === null) throw new InvariantError(`the tick has no tree ${tree_id}`);
    return tree;
  }

  async #decideInput(item: QueuedInput): Promise<void> {
    const { tree_id, submission } = item;
    const { input, rememberInputId } = submission;
    const { store, trees, timestamps, secrets, parked } = this.#options;
    const outcome = emptyOutcome(item);
    const mark =
      this.#marks.findInput(item) ?? (rememberInputId ? this.batch.findInput(tree_id, input.input_id) : null);
    if (mark !== null) {
      outcome.result = { refused: false, repeat_of: mark.seq };
      this.outcomes.push(outcome);
      return;
    }
    const tree = trees.getLoaded(tree_id) ?? (await this.#treeFor(tree_id, submission));
    if (this.#absent.has(tree_id) && !this.#opened.has(tree_id)) {
      this.#postpone(item);
      return;
    }
    if (submission.isObsolete?.(tree) === true) {
      outcome.result = { refused: true, repeat_of: null };
      this.outcomes.push(outcome);
      return;
    }
    if (input.kind === 'proposal' && isMidStep(tree, input.run_id) && parked?.park(item) === true) return;
    const facts = this.#ledgerFactsFor(tree);
    if (facts?.mustPostpone(tree, input) === true) {
      this.#postpone(item);
      return;
    }
    if (facts?.mustPrepare(tree, input) === true) await facts.prepare(tree, input);
    const at = tree.head.seq;
    const now = timestamps.now();
    // The batch has nothing of the tree yet, so its current state is committed.
    if (!this.batch.has(tree_id)) outcome.snapshot = trees.dueSnapshot(tree);
    const complete = await completeInput({
      tree,
      submission: this.#withFacts(tree, submission, now),
      time: now,
      overlay: this.#currentOverlay(),
      batch: this.batch,
      ...{ item, marks: this.#marks, isNewTree: this.#opened.has(tree_id) },
      store,
      secrets,
    });
    const decision = tree.decide(complete);
    // A refused input may be submitted again later, so its id is not stored.
    if (rememberInputId && !decision.refused) outcome.inputs.push({ tree_id, input_id: input.input_id, seq: at });
    if (at === 0) outcome.opened = { case_id: caseOf(complete) };
    const turn: InputTurn = { item, tree, outcome, pendingCommands: [], answers: [] };
    this.#turns.set(tree_id, turn);
    this.#applyDecision(turn, decision);
    outcome.result = { refused: decision.refused, repeat_of: null };
  }

  /** Leaves an input, and the later ones of its tree, to the next tick. */
  #postpone(item: QueuedInput): void {
    this.#waiting.add(item.tree_id);
    this.postponed.push(item);
  }

  /** Reads the overlay once per tick. */
  #currentOverlay(): OverlayFact | null {
    this.#overlay ??= { fact: toRecordedOverlay(this.#options.overlay?.current() ?? null) };
    return this.#overlay.fact;
  }

  async #treeFor(tree_id: string, { input }: Submission): Promise<Tree> {
    const { trees } = this.#options;
    const tree = await trees.get(tree_id);
    if (tree !== null) return tree;
    if (!isOpeningInput(input)) throw unknownTreeError(tree_id);
    this.#opened.add(tree_id);
    return trees.open(tree_id);
  }

  /** Completes all turns and adds their outcomes to the batch, in order. */
  #finish(): void {
    const turns = this.#turns;
    this.#turns = new Map();
    let active = [...turns.values()].filter(({ pendingCommands }) => pendingCommands.length > 0);
    while (active.length > 0) {
      active = active.filter((turn) => this.#runGuarded(turn, () => this.#runCommands(turn)));
      active = active.filter((turn) => this.#runGuarded(turn, () => this.#decideAnswers(turn)));
      active = active.filter(({ pendingCommands }) => pendingCommands.length > 0);
    }
    for (const turn of turns.values()) {
      if (this.#broken.has(turn.item.tree_id)) continue;
      const addToBatch = (): void => {
        turn.outcome.recoveryHint = this.#options.trees.nextRecoveryHint(turn.tree, turn.outcome.decisions);
        this.batch.add(turn.outcome);
        this.#options.reservations.join(turn.item.tree_id);
      };
      if (this.#runGuarded(turn, addToBatch)) this.outcomes.push(turn.outcome);
    }
  }

  #runCommands(turn: InputTurn): void {
    turn.answers = turn.pendingCommands.map((command) => this.#runCommand(command));
    turn.pendingCommands = [];
  }

  #decideAnswers(turn: InputTurn): void {
    const { tree, answers } = turn;
    for (const answer of answers) {
      const now = this.#options.timestamps.now();
      this.#applyDecision(turn, tree.decide(withTimestamp(this.#withFacts(tree, answer, now), now, null)));
    }
  }

  /** Both are added only just before a decision, so that earlier ones of this tick count. */
  #withFacts(tree: Tree, submission: Submission, now: string): Submission {
    const reserved = this.#options.reservations.addReserved(tree, this.#withSandboxFacts(tree, submission));
    return this.#ledgerFactsFor(tree)?.addFacts(tree, reserved, now) ?? reserved;
  }

  /** Null if the policy of the tree needs none. */
  #ledgerFactsFor({ policy }: Tree): LedgerFacts | null {
    return policy !== null && needsLedgerFacts(policy) ? this.#options.ledgerFacts.get() : null;
  }

  /** Decision points answer after some time, and the sandbox may have changed meanwhile: its facts are gathered now. */
  #withSandboxFacts(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (input.kind !== 'facts' || input.decisions === undefined) return submission;
    const request = findFactsRequest(tree, input.run_id);
    if (request === null) return submission;
    return { ...submission, input: { ...input, facts: this.#options.effectRunner.gather(request) } };
  }

  /** Applies a decision: local reads run in this tick, everything else after its commit. */
  #applyDecision(turn: InputTurn, decision: Decision): void {
    const { tree, outcome } = turn;
    const { tree_id } = tree;
    outcome.decisions.push(decision);
    this.#options.reservations.applyDecision(tree, decision);
    this.#options.ledgerFacts.created?.applyDecision(tree, decision);
    const ends = decision.ended.some(({ run_id }) => run_id === tree_id);
    outcome.ended ||= ends;
    outcome.checkpoint ||= ends || tree.policy?.knobs.checkpoints !== 'tree_end';
    for (const command of decision.commands) {
      if (isAnsweredInTick(command)) turn.pendingCommands = [...turn.pendingCommands, command];
      else outcome.issued.push({ tree_id, command });
    }
  }

  #runCommand(command: Command): Submission {
    const { effectRunner } = this.#options;
    if (command.kind === 'gather') return factsSubmission(command, effectRunner.gather(command.request));
    const result = effectRunner.run(command.effect, true);
    if (result instanceof Promise) throw new InvariantError('a local read must answer at once');
    return resultSubmission(command.effect, result, false);
  }

  #runGuarded({ item }: InputTurn, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#rejectBroken(item, error);
      return false;
    }
  }

  #rejectBroken(item: QueuedInput, error: unknown): void {
    if (this.#options.store.records?.dirty === true) throw error;
    this.#turns.delete(item.tree_id);
    this.#broken.add(item.tree_id);
    this.#options.trees.drop(item.tree_id);
    this.#options.reservations.undo(item.tree_id);
    this.#options.ledgerFacts.created?.undo();
    item.reject(error);
  }
}

const emptyOutcome = (item: QueuedInput): InputOutcome => ({
  item,
  tree_id: item.tree_id,
  decisions: [],
  inputs: [],
  opened: null,
  ended: false,
  recoveryHint: null,
  snapshot: null,
  issued: [],
  checkpoint: false,
  result: { refused: false, repeat_of: null },
});

/** The case that an opening input names; null for other inputs. */
const caseOf = ({ recorded }: TreeInput): string | null => ('case_id' in recorded ? recorded.case_id : null);

/** Timestamps of inputs. Caches the text, since every input within a millisecond has the same one. */
export class Timestamps {
  readonly #clock: Clock;
  #now = { at: Number.NaN, text: '' };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): string {
    const now = this.#clock.now();
    if (now !== this.#now.at) this.#now = { at: now, text: new Date(now).toISOString() };
    return this.#now.text;
  }
}
