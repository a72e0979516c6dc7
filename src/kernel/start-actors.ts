import type { AnyStateMachine } from 'xstate';
import type { Actors, Beginning, Hear } from './actors.js';
import { chartActors } from './chart-actors.js';
import { chartOf } from './chart.js';
import type { Interpretation } from './interpreter.js';
import { xstateActors } from './xstate-actors.js';

/** The root actor of a tree, and where it begins. */
export interface RootActor {
  readonly machine: AnyStateMachine;
  readonly id: string;
  readonly from: Beginning;
}

/** Starts the actors of a tree under the interpreter that it is told. @throws what a machine throws */
export const startActors = (how: Interpretation, { machine, id, from }: RootActor, hear: Hear): Actors =>
  how.interpreter === 'xstate'
    ? xstateActors(machine, id, from, hear, how.inspect)
    : chartActors(chartOf(machine), id, from, hear, how.onlooker);
