// The two interpreters of the machines, and the option that selects one for a tree.

import type { InspectionEvent } from 'xstate';
import type { Policy } from '../../core/policy/policy.js';
import type { Actors, EmissionListener, RootActor, TransitionObserver } from './actors.js';

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
 * How a tree is interpreted. Only the table-driven interpreter supports an observer. XState's actors are started by a
 * function that the caller passes (`xstateInterpretation`), so that the kernel does not import them.
 */
export type Interpretation =
  | { readonly interpreter: 'table-driven'; readonly observer?: TransitionObserver }
  | { readonly interpreter: 'xstate'; readonly start: ActorStarter };

/** Starts the actors of a tree under its policy. @throws the error of a machine */
export type ActorStarter = (root: RootActor, policy: Policy, onEmission: EmissionListener) => Actors;

/** For replay and for reading, which need no inspection, whichever interpreter the engine uses. */
export const TABLE_DRIVEN: Interpretation = { interpreter: 'table-driven' };
