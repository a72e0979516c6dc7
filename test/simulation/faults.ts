import type { Random } from './random.js';

/** The fault rate of one port in one seed: most seeds leave some ports undisturbed and disturb others (BUGGIFY). */
const WEATHERS = [0, 0.3, 1, 1, 3] as const;

/** Decides at every call of a port whether and how it fails. */
export class Faults {
  readonly #random: Random;
  readonly #weather = new Map<string, number>();
  readonly calls = new Map<string, number>();
  readonly injected = new Map<string, number>();
  /** While the world is brought to rest, no new fault occurs. */
  quiet = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** @returns one of the faults, each with its probability for this call, or `none` */
  draw<Fault extends string>(port: string, odds: Readonly<Record<Fault, number>>): Fault | 'none' {
    count(this.calls, port);
    if (this.quiet) return 'none';
    const weather = this.#weatherOf(port);
    let at = this.#random.next() / 0x1_0000_0000;
    for (const [fault, probability] of Object.entries(odds) as [Fault, number][]) {
      at -= probability * weather;
      if (at >= 0) continue;
      count(this.injected, `${port}: ${fault}`);
      return fault;
    }
    return 'none';
  }

  #weatherOf(port: string): number {
    const known = this.#weather.get(port) ?? this.#random.pick(WEATHERS);
    this.#weather.set(port, known);
    return known;
  }
}

export function count(counts: Map<string, number>, key: string, more = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + more);
}
