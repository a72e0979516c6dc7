// The source of a campaign's payloads: grammar, mutation and corpora, in fixed shares. Mutation prefers payloads that
// have shown a new behaviour of the system. One seed determines all of it.

import fc from 'fast-check';
import { chanceOf, seedOf, type Chance } from './chance.js';
import { payload } from './grammar.js';
import { mutate, PAYLOAD_TOKENS, withFreshId } from './mutate.js';

/** Payloads with a new behaviour that are kept for mutation; large ones would only slow the campaign down. */
const KEPT_MAX = 4_000;
const KEPT_BYTES_MAX = 4_096;

export class PayloadSource {
  readonly #seed: number;
  readonly #corpus: readonly Uint8Array[];
  readonly #kept: Uint8Array[] = [];
  readonly #behaviours = new Set<string>();
  #chunks = 0;

  constructor(seed: number, corpus: readonly Uint8Array[]) {
    this.#seed = seed;
    this.#corpus = corpus;
  }

  /** The number of different behaviours. */
  get behaviours(): number {
    return this.#behaviours.size;
  }

  /** Reports the result of a payload: one with a new behaviour is kept for mutation. */
  learn(behaviour: string, bytes: Uint8Array): void {
    if (this.#behaviours.has(behaviour)) return;
    this.#behaviours.add(behaviour);
    if (bytes.length <= KEPT_BYTES_MAX && this.#kept.length < KEPT_MAX) this.#kept.push(bytes);
  }

  /** The next `count` payloads. */
  chunk(count: number): readonly Uint8Array[] {
    const seed = seedOf(this.#seed, (this.#chunks += 1));
    const chance = chanceOf(seed);
    const written = fc.sample(payload, { seed: seed | 0, numRuns: Math.max(1, Math.ceil(count / 2)) });
    return Array.from({ length: count }, (_, index) =>
      index % 2 === 0 ? written[index / 2]! : this.#changed(chance, written),
    );
  }

  #changed(chance: Chance, written: readonly Uint8Array[]): Uint8Array {
    const seed = this.#real(chance, written);
    const fresh = chance.oneIn(6) ? seed : withFreshId(seed, chance);
    if (chance.oneIn(8)) return Uint8Array.from(fresh);
    return mutate(fresh, chance, { tokens: PAYLOAD_TOKENS, other: this.#real(chance, written) });
  }

  #real(chance: Chance, written: readonly Uint8Array[]): Uint8Array {
    const from = chance.below(10);
    if (from < 4 && this.#kept.length > 0) return chance.pick(this.#kept);
    return from < 8 ? chance.pick(this.#corpus) : chance.pick(written);
  }
}
