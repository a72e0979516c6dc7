import type { InputKind } from '../../core/contract/run/entry.js';
import type { Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';

/** An input of a tick, with its decisions: the part of an `InputOutcome` that observers see. */
export interface ObservedInput {
  readonly tree_id: string;
  readonly item: {
    readonly submission: { readonly input: { readonly kind: InputKind; readonly run_id: string } };
    readonly queuedAt: number;
  };
  readonly decisions: readonly Decision[];
}

/** A tick whose decisions are durable. Times are those of the observer's clock, in ms. */
export interface ObservedTick {
  readonly outcomes: readonly ObservedInput[];
  readonly startedAt: number;
  /** All inputs are decided, and their commit begins. */
  readonly decidedAt: number;
  readonly committedAt: number;
  /** The tree of an outcome, with its decisions applied. */
  readonly tree: (tree_id: string) => Tree | null;
}

/** Measures an engine, for operators. Its errors must not affect the engine, and it changes nothing. */
export interface TickObserver {
  now(): number;
  /** Called after the commit, before a caller has its response. */
  onTick(tick: ObservedTick): void;
  /** Trees were folded into memory. */
  onFolded(trees: number, sinceMs: number): void;
}
