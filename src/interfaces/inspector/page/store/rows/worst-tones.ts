// The severity of tones, and the worst tone of any range of a list: a problem stays visible however small it is drawn.

import type { Tone } from '../../../../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';

/** From harmless to worst: the index is the number in a column. */
export const TONES = [
  'plain',
  'created',
  'allow',
  'running',
  'SUCCESS',
  'completed',
  'cancelled',
  NEEDS_APPROVAL,
  'VALIDATION_ERROR',
  'deny',
  'denied',
  'DENIED',
  'failed',
  'EXECUTION_ERROR',
] as const satisfies readonly Tone[];

export const toneNumber = (tone: string): number => Math.max(0, (TONES as readonly string[]).indexOf(tone));
export const toneAt = (number: number): Tone => TONES[number] ?? 'plain';

/** Tones from this one on are marked on the scrubber. A decision that waits for an approval is not a problem. */
export const FIRST_MARKED = TONES.indexOf(NEEDS_APPROVAL);
/** Tones from this one on are problems. */
export const FIRST_PROBLEM = TONES.indexOf('VALIDATION_ERROR');
export const isProblem = (tone: Tone): boolean => toneNumber(tone) >= FIRST_PROBLEM;

/** The colour of a tone: six for states, one each for an approval that is needed and for invalid input, and none. */
export type Hue =
  'idle' | 'waiting' | 'running' | 'completed' | 'failed' | 'denied' | 'cancelled' | 'invalid' | 'plain';
const HUES: Readonly<Record<Tone | 'paused', Hue>> = {
  paused: 'invalid',
  plain: 'plain',
  created: 'idle',
  running: 'running',
  completed: 'completed',
  SUCCESS: 'completed',
  allow: 'completed',
  failed: 'failed',
  EXECUTION_ERROR: 'failed',
  denied: 'denied',
  DENIED: 'denied',
  deny: 'denied',
  cancelled: 'cancelled',
  [NEEDS_APPROVAL]: 'waiting',
  VALIDATION_ERROR: 'invalid',
};
export const hueOf = (tone: Tone | 'paused'): Hue => HUES[tone];

const FAN = 32;
const LEVELS = 4;

/** Finds the worst number of any range in a few steps: each level stores the worst of 32 numbers of the level below. */
export class WorstTones {
  readonly #levels: Uint8Array[] = [new Uint8Array(1024)];

  set(place: number, tone: number): void {
    let at = place;
    for (let level = 0; level < LEVELS; level += 1) {
      const values = this.#room(level, at);
      if ((values[at] ?? 0) < tone) values[at] = tone;
      at = Math.floor(at / FAN);
    }
  }

  /** The worst number from `from` to before `to`. */
  worstIn(from: number, to: number): number {
    return this.#worst(0, from, to);
  }

  #worst(level: number, from: number, to: number): number {
    const values = this.#levels[level];
    if (values === undefined || from >= to) return 0;
    let [low, high, worst] = [from, to, 0];
    while (low < high && low % FAN !== 0) worst = Math.max(worst, values[low++] ?? 0);
    while (low < high && high % FAN !== 0) worst = Math.max(worst, values[--high] ?? 0);
    return low < high ? Math.max(worst, this.#above(level, low, high)) : worst;
  }

  #above(level: number, low: number, high: number): number {
    if (this.#levels[level + 1] !== undefined) return this.#worst(level + 1, low / FAN, high / FAN);
    const values = this.#levels[level];
    let worst = 0;
    for (let at = low; at < high; at += 1) worst = Math.max(worst, values?.[at] ?? 0);
    return worst;
  }

  #room(level: number, place: number): Uint8Array {
    const values = this.#levels[level] ?? new Uint8Array(64);
    if (place < values.length) return (this.#levels[level] = values);
    const wider = new Uint8Array(Math.max(place + 1, values.length * 2));
    wider.set(values);
    return (this.#levels[level] = wider);
  }
}
