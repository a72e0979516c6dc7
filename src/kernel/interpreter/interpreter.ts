// The two interpreters of the machines, and the option that selects one for a tree.

import type { InspectionEvent } from 'xstate';
import type { TransitionObserver } from './actors.js';

/**
 * What runs the machines of a tree: the table-driven interpreter, or XState's own actors. Both decide the same, byte
 * for byte (decision 0006).
 */
export type Interpreter = 'table-driven' | 'xstate';

export const INTERPRETERS: readonly Interpreter[] = ['table-driven', 'xstate'];

/**
 * Receives XState's inspection events as XState emits them, with the live actors in them. It must not throw and must
 * not act on an actor; code that is not ours gets them through `inertInspector`.
 */
export type InspectionListener = (event: InspectionEvent) => void;

/** How the machines of a tree are run. Only XState's actors can be inspected; only the tables have an onlooker. */
export type Interpretation =
  | { readonly interpreter: 'table-driven'; readonly observer?: TransitionObserver }
  | { readonly interpreter: 'xstate'; readonly inspect?: InspectionListener };

/** For what needs no inspection, whichever interpreter the engine uses: replay, and reading. */
export const TABLE_DRIVEN: Interpretation = { interpreter: 'table-driven' };
