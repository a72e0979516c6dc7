// The points at which a process may die. Wrapped ports pass each of them by name.

export const POINTS = [
  'commit.before',
  'commit.after',
  'externalHeadStore.before',
  'externalHeadStore.after',
  'effect.before',
  // The effect is half done: a rename has both names, a write has its temporary file.
  'effect.mid',
  // The effect is done, and the journal does not contain it yet.
  'effect.performed',
  'effect.after',
  'settle.before',
  'settle.after',
] as const;
export type Point = (typeof POINTS)[number];

/** The `nth` pass of a point, from 1. */
export interface Moment {
  readonly point: Point;
  readonly nth: number;
}

export interface Hooks {
  /** Reports that a point is reached. It may not return, or throw. */
  pass(point: Point): void;
  /** Whether the next pass of this point is the chosen one. */
  isDue(point: Point): boolean;
}

/** Runs `act` at one point, once. */
export class FaultPoints implements Hooks {
  readonly #moment: Moment | null;
  readonly #act: (moment: Moment) => void;
  readonly #passed = new Map<Point, number>();

  constructor(moment: Moment | null, act: (moment: Moment) => void) {
    this.#moment = moment;
    this.#act = act;
  }

  pass(point: Point): void {
    const due = this.isDue(point);
    this.#passed.set(point, this.passed(point) + 1);
    if (due && this.#moment !== null) this.#act(this.#moment);
  }

  isDue(point: Point): boolean {
    return this.#moment?.point === point && this.passed(point) + 1 === this.#moment.nth;
  }

  passed(point: Point): number {
    return this.#passed.get(point) ?? 0;
  }
}

export const unharmed: Hooks = { pass: () => undefined, isDue: () => false };

/** Parses `commit.after:3`. */
export function momentOf(text: string): Moment {
  const [name, nth] = text.split(':');
  const point = POINTS.find((each) => each === name);
  if (point === undefined || !/^[1-9]\d*$/.test(nth ?? '')) throw new Error(`not a moment: ${text}`);
  return { point, nth: Number(nth) };
}

export const nameOf = ({ point, nth }: Moment): string => `${point}:${nth}`;
