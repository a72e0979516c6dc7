import type { Pace } from '../../src/engine/ports/pace.js';
import { count, type Faults } from './faults.js';
import type { Agenda, Process } from './process.js';
import type { Random } from './random.js';

/**
 * Where paced work yields: at every n-th call, never (0), or at random. A counted yield ends within the step of the
 * simulation in which it began, so the history does not depend on the number. A random one may wait like any other
 * answer of a port, so that other calls run in between.
 */
export type Yields = number | 'drawn';

const YIELD_ODDS = 0.1;
const HOLD_ODDS = 0.02;

export interface PaceGround {
  readonly agenda: Agenda;
  readonly faults: Faults;
  /** A separate random stream: where work yields changes no other draw. */
  readonly random: Random;
  readonly yields: Yields;
}

/** Divides work by the simulation's agenda, not by a clock. */
export class SimPace {
  readonly #ground: PaceGround;
  #calls = 0;

  constructor(ground: PaceGround) {
    this.#ground = ground;
  }

  /** The pace as one process sees it. */
  of(process: Process): Pace {
    return { begin: () => () => this.#pause(process) };
  }

  #pause(process: Process): Promise<void> | undefined {
    const { agenda, faults, random, yields } = this.#ground;
    this.#calls += 1;
    count(faults.calls, 'pace');
    if (yields !== 'drawn') {
      return yields > 0 && this.#calls % yields === 0 ? agenda.yield(process) : undefined;
    }
    if (random.chance(HOLD_ODDS)) {
      count(faults.injected, 'pace: held');
      return agenda.hold(process, 'pace');
    }
    return random.chance(YIELD_ODDS) ? agenda.yield(process) : undefined;
  }
}

/** For work that runs alone. */
export const UNDIVIDED: Pace = { begin: () => () => undefined };
