import type { AnyStateMachine } from 'xstate';
import type { Actors, ActorInit, EmissionListener } from './actors.js';
import { tableDrivenActors } from './table-driven-actors.js';
import { compileMachine } from './compiled-machine.js';
import type { Interpretation } from './interpreter.js';
import { xstateActors } from './xstate-actors.js';

/** The root actor of a tree, and where it begins. */
export interface RootActor {
  readonly machine: AnyStateMachine;
  readonly id: string;
  readonly from: ActorInit;
}

/** Starts the actors of a tree under the interpreter that it is told. @throws what a machine throws */
export const startActors = (
  interpretation: Interpretation,
  { machine, id, from }: RootActor,
  onEmission: EmissionListener,
): Actors =>
  interpretation.interpreter === 'xstate'
    ? xstateActors(machine, id, from, onEmission, interpretation.inspect)
    : tableDrivenActors(compileMachine(machine), id, from, onEmission, interpretation.observer);
