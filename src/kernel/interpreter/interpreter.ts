// The two interpreters of the machines, and the option that selects one for a tree.

import type { InspectionEvent } from 'xstate';
import type { TransitionObserver } from './actors.js';

/**
 * The interpreter of a tree's machines: table-driven, or XState's own actors. Both decide the same, byte for byte
 * (decision 0006).
 */
export type Interpreter = 'table-driven' | 'xstate';

export const INTERPRETERS: readonly Interpreter[] = ['table-driven', 'xstate'];

/**
 * Receives XState's inspection events as XState emits them, with live actors. It must not throw and must not act on an
 * actor; foreign code receives them through `inertInspector`.
 */
export type InspectionListener = (event: InspectionEvent) => void;

/**
 * How a tree is interpreted. Only XState's actors support inspection; only the table-driven interpreter supports an
 * observer.
 */
export type Interpretation =
  | { readonly interpreter: 'table-driven'; readonly observer?: TransitionObserver }
  | { readonly interpreter: 'xstate'; readonly inspect?: InspectionListener };

/** For replay and for reading, which need no inspection, whichever interpreter the engine uses. */
export const TABLE_DRIVEN: Interpretation = { interpreter: 'table-driven' };
