// One tick: the inputs that share a transaction, from the first look at each to the batch that they make.
//
//   T1. Inputs of different trees go side by side: all decide, then the world answers all, then all decide again. What
//       decides and what looks at files push each other out of the processor's caches, so they take few turns.
//   T2. The inputs of one tree go one after another: the next one begins when the one before it is done.
//   T3. An input on which its tree breaks leaves nothing in the batch, and the tree is dropped (E4). What came after it
//       for the same tree waits for the next tick.
//   T4. A tree that breaks when records were written in this transaction takes all of it along: nobody can tell which
//       of them were its own. The engine ends then (E2).

import { isOpening } from '../contract/entry.js';
import type { OverlayFact } from '../contract/overlay.js';
import { InvariantError } from '../errors.js';
import type { Command, Decision, Ending, Reply, Timer, TreeInput } from '../kernel/input.js';
import type { Tree } from '../kernel/tree.js';
import type { LedgerStore } from '../ports/ledger-store.js';
import type { Secrets } from '../ports/secrets.js';
import { BatchBuilder } from './batch.js';
import { completeInput } from './complete-input.js';
import type { Hands } from './hands.js';
import type { LiveTrees } from './live-trees.js';
import { MarkLookup } from './mark-lookup.js';
import type { QuotaReservations } from './quota-reservations.js';
import { unknownTree } from './refusals.js';
import { factsSubmission, resultSubmission, timed } from './submissions.js';
import type { Taken, Waiting } from './taken.js';
import { recordedOverlay } from './recorded-overlay.js';
import type { Submission } from './tree-engine.js';

export interface TickOptions {
  readonly store: LedgerStore;
  readonly trees: LiveTrees;
  readonly hands: Hands;
  readonly reservations: QuotaReservations;
  readonly secrets: Secrets;
  /** The time that an input gets. */
  readonly time: () => string;
  /** The emergency overlay as it is now (D1). */
  readonly overlay: () => OverlayFact | null;
  readonly tell: Telling;
}

/** Whom to tell what, once it is durable. */
export interface Telling {
  reply(tree_id: string, reply: Reply): void;
  ended(tree_id: string, ending: Ending): void;
  timers(tree_id: string, timers: readonly Timer[]): void;
}

/** An input that is being decided, and what its tree still asks of the world. */
interface Turn {
  readonly item: Waiting;
  readonly tree: Tree;
  readonly taken: Taken;
  asked: readonly Command[];
  answers: readonly Submission[];
}

export class Tick {
  readonly batch = new BatchBuilder();
  readonly taken: Taken[] = [];
  /** For the next tick. */
  readonly postponed: Waiting[] = [];
  readonly #options: TickOptions;
  readonly #marks: MarkLookup;
  readonly #broken = new Set<string>();
  /** Trees that this tick opens. */
  readonly #opened = new Set<string>();
  #overlay: { readonly fact: OverlayFact | null } | null = null;
  #turns = new Map<string, Turn>();

  constructor(options: TickOptions) {
    this.#options = options;
    options.reservations.begin();
    this.#marks = new MarkLookup(options.store, options.trees);
  }

  async take(items: readonly Waiting[]): Promise<void> {
    await this.#marks.begin(items);
    for (const item of items) {
      if (this.#turns.has(item.tree_id)) this.#finish();
      if (this.#broken.has(item.tree_id)) this.postponed.push(item);
      else await this.#begin(item).catch((error: unknown) => this.#break(item, error));
    }
    this.#finish();
  }

  async #begin(item: Waiting): Promise<void> {
    const { tree_id, submission } = item;
    const { input, external } = submission;
    const { store, trees, time, secrets, reservations } = this.#options;
    const taken = nothingTaken(tree_id);
    const mark = this.#marks.input(item) ?? (external ? this.batch.input(tree_id, input.input_id) : null);
    if (mark !== null) {
      taken.told.push(() => item.resolve({ refused: false, repeat_of: mark.seq }));
      this.taken.push(taken);
      return;
    }
    const tree = trees.alive(tree_id) ?? (await this.#treeFor(tree_id, submission));
    const at = tree.head.seq;
    // Nothing of the tree is in this batch yet: where it stands is committed.
    if (!this.batch.has(tree_id)) taken.snapshot = trees.dueSnapshot(tree);
    const complete = await completeInput({
      tree,
      submission: reservations.complete(tree, submission),
      time: time(),
      overlay: this.#overlayNow(),
      batch: this.batch,
      proposal: () => this.#marks.proposal(tree, item, this.#opened.has(tree_id)),
      store,
      secrets,
    });
    const decision = tree.decide(complete);
    // An input that was refused may come again when its time has come.
    if (external && !decision.refused) taken.inputs.push({ tree_id, input_id: input.input_id, seq: at });
    if (at === 0) taken.opened = { case_id: caseOf(complete) };
    const turn: Turn = { item, tree, taken, asked: [], answers: [] };
    this.#turns.set(tree_id, turn);
    this.#follow(turn, decision);
    taken.told.push(() => item.resolve({ refused: decision.refused, repeat_of: null }));
  }

  /** One look for all inputs of the tick. */
  #overlayNow(): OverlayFact | null {
    this.#overlay ??= { fact: recordedOverlay(this.#options.overlay()) };
    return this.#overlay.fact;
  }

  async #treeFor(tree_id: string, { input }: Submission): Promise<Tree> {
    const { trees } = this.#options;
    const tree = await trees.get(tree_id);
    if (tree !== null) return tree;
    if (!isOpening(input)) throw unknownTree(tree_id);
    this.#opened.add(tree_id);
    return trees.open(tree_id);
  }

  /** Brings all turns to their end, and what they came to into the batch, in their order. */
  #finish(): void {
    const turns = this.#turns;
    this.#turns = new Map();
    let open = [...turns.values()].filter(({ asked }) => asked.length > 0);
    while (open.length > 0) {
      open = open.filter((turn) => this.#unbroken(turn, () => this.#answer(turn)));
      open = open.filter((turn) => this.#unbroken(turn, () => this.#decide(turn)));
      open = open.filter(({ asked }) => asked.length > 0);
    }
    for (const turn of turns.values()) {
      if (this.#broken.has(turn.item.tree_id)) continue;
      const join = (): void => {
        turn.taken.rest = this.#options.trees.nextRest(turn.tree, turn.taken.decisions);
        this.batch.join(turn.taken);
        this.#options.reservations.join(turn.item.tree_id);
      };
      if (this.#unbroken(turn, join)) this.taken.push(turn.taken);
    }
  }

  #answer(turn: Turn): void {
    turn.answers = turn.asked.map((command) => this.#answerTo(command));
    turn.asked = [];
  }

  #decide(turn: Turn): void {
    const { tree, answers } = turn;
    const { reservations, time } = this.#options;
    // Only now: what other trees of this tick have decided counts.
    for (const answer of answers) {
      this.#follow(turn, tree.decide(timed(reservations.complete(tree, answer), time(), null)));
    }
  }

  /** Takes up what a decision says: local reads are for this tick; everything else is done after its commit. */
  #follow(turn: Turn, decision: Decision): void {
    const { tell } = this.#options;
    const { tree, taken } = turn;
    const { tree_id } = tree;
    taken.decisions.push(decision);
    this.#options.reservations.follow(tree_id, decision);
    for (const reply of decision.replies) taken.told.push(() => tell.reply(tree_id, reply));
    for (const ending of decision.ended) taken.told.push(() => tell.ended(tree_id, ending));
    if (decision.timers.length > 0) taken.told.push(() => tell.timers(tree_id, decision.timers));
    const ends = decision.ended.some(({ run_id }) => run_id === tree_id);
    taken.ended ||= ends;
    taken.checkpoint ||= ends || tree.policy?.knobs.checkpoints !== 'tree_end';
    for (const command of decision.commands) {
      if (command.kind === 'gather' || command.in_commit) turn.asked = [...turn.asked, command];
      else taken.issued.push({ tree_id, command });
    }
  }

  #answerTo(command: Command): Submission {
    const { hands } = this.#options;
    if (command.kind === 'gather') return factsSubmission(command, hands.gather(command.request));
    const result = hands.perform(command.effect, true);
    if (result instanceof Promise) throw new InvariantError('a local read must answer at once');
    return resultSubmission(command.effect, result, false);
  }

  #unbroken({ item }: Turn, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#break(item, error);
      return false;
    }
  }

  #break(item: Waiting, error: unknown): void {
    if (this.#options.store.records?.dirty === true) throw error;
    this.#turns.delete(item.tree_id);
    this.#broken.add(item.tree_id);
    this.#options.trees.drop(item.tree_id);
    this.#options.reservations.undo(item.tree_id);
    item.reject(error);
  }
}

const nothingTaken = (tree_id: string): Taken => ({
  tree_id,
  decisions: [],
  inputs: [],
  opened: null,
  ended: false,
  rest: null,
  snapshot: null,
  issued: [],
  checkpoint: false,
  told: [],
});

/** The case that a tree is opened for. */
const caseOf = ({ recorded }: TreeInput): string | null => ('case_id' in recorded ? recorded.case_id : null);
