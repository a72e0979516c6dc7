import type { AnyStateMachine } from 'xstate';
import type { Actors, ActorInit, EmissionListener } from './actors.js';
import { tableDrivenActors, compileMachine } from './table-driven-actors.js';
import type { Interpretation } from './interpreter.js';
import { xstateActors } from './xstate-actors.js';

/** The machine and id of a tree's root actor, and how it starts. */
export interface RootActor {
  readonly machine: AnyStateMachine;
  readonly id: string;
  readonly from: ActorInit;
}

/** Starts the actors of a tree under the chosen interpreter. @throws the error of a machine */
export const startActors = (
  interpretation: Interpretation,
  { machine, id, from }: RootActor,
  onEmission: EmissionListener,
): Actors =>
  interpretation.interpreter === 'xstate'
    ? xstateActors(machine, id, from, onEmission, interpretation.inspect)
    : tableDrivenActors(compileMachine(machine), id, from, onEmission, interpretation.observer);
