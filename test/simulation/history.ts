import { createHash } from 'node:crypto';

/** What must hold, by name. A planted bug has to be found by the one that is meant for it. */
export const INVARIANTS = [
  'proposal.once', // a proposal id, or a caller's input id, takes effect once
  'step.complete', // each proposal has one outcome, one trace, one response, and they fit together
  'acknowledged.durable', // what a caller was told stands in the ledger at that moment
  'effect.allowed', // nothing is performed without a durable allow of its own run
  'effect.once', // at most once; an unknown outcome is never tried again
  'effect.truth', // the ledger says of an effect what happened
  'terminal.immutable', // an ended run never moves
  'run.inherits', // pins, case, correlation and root come from the parent
  'events.required', // the events of S4 §6, in their order
  'chain.whole', // no gap, no loose entry
  'fold.same', // the recorded tree, folded, is the live tree
  'timer.early', // no timer rings before its time
  'fail.closed', // after a commit that failed nothing more is written
  'reopen.settled', // after an opening nothing is pending, and only remote agents are alive
  'caller.answer', // every call ends, with an answer or an error that the contract knows
  'quota.held', // what is written never exceeds the quota of its case, however many agents write (C82)
  'ledger.verifies', // `ledger verify` and `replay` agree
] as const;
export type Invariant = (typeof INVARIANTS)[number];

export interface Violation {
  readonly invariant: Invariant;
  readonly detail: string;
}

const TAIL_LINES = 24;

/** Everything that happened, as one digest and the last few lines. The first violation is kept, and ends the seed. */
export class History {
  readonly #hash = createHash('sha256');
  readonly #tail: string[] = [];
  #violation: Violation | null = null;

  note(line: string): void {
    this.#hash.update(line).update('\n');
    this.#tail.push(line.length > 240 ? `${line.slice(0, 240)}…` : line);
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
  }

  get tail(): readonly string[] {
    return this.#tail;
  }

  get violation(): Violation | null {
    return this.#violation;
  }

  /** Whether nothing has been violated so far. */
  isClean(): boolean {
    return this.#violation === null;
  }

  report(invariant: Invariant, detail: string): void {
    this.#violation ??= { invariant, detail };
    this.note(`VIOLATION ${invariant}: ${detail}`);
  }

  digest(): string {
    return this.#hash.copy().digest('hex');
  }
}
