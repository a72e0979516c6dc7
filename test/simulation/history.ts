import { createHash } from 'node:crypto';

/** The invariants, by name. The intended invariant has to find a planted bug. */
export const INVARIANTS = [
  'proposal.once', // a proposal id, or a caller's input id, takes effect once
  'step.complete', // each proposal has one outcome, one trace, one response, and they fit together
  'acknowledged.durable', // every result that a caller received was in the ledger then
  'effect.allowed', // no effect runs without a durable allow of its own run
  'effect.once', // at most once; an unknown outcome is never retried
  'effect.truth', // the ledger records what the effect did
  'terminal.immutable', // an ended run never changes
  'run.inherits', // pins, case, correlation and root come from the parent
  'events.required', // the events of S4 §6, in their order
  'chain.whole', // no gap, no unconnected entry
  'fold.same', // the recorded tree, folded, is the live tree
  'timer.early', // no timer fires early
  'fail.closed', // after a failed commit nothing more is written
  'reopen.settled', // after an opening nothing is pending, and only remote agents are live
  'caller.answer', // every call ends, with an answer or an error that the contract knows
  'quota.held', // writes never exceed the quota of the case, however many agents write (C82)
  'ledger.verifies', // `ledger verify` and `replay` agree
] as const;
export type Invariant = (typeof INVARIANTS)[number];

export interface Violation {
  readonly invariant: Invariant;
  readonly detail: string;
}

const TAIL_LINES = 24;

/** All events, as one digest and the last few lines. The first violation is recorded, and ends the seed. */
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

  /** Whether there is no violation so far. */
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
