// The history of one run, in order: its entries, and between them the moves of its machines. A run also moves on inputs
// that are addressed to other runs, such as the result of its child. Those are listed too, so that each move stands
// under the input that caused it.

import type { Course, Move } from '../../../../core/contract/inspection/inspection.js';
import { lowerBound, NumberList } from './rows/number-list.js';
import { ALL_MOVES, type Moment } from './path.js';

/** An entry, and 0; or an entry and the number of the move after it, from 1. */
export interface RunMark {
  readonly at: number;
  readonly nth: number;
  /** The index of the move in the course, or -1. */
  readonly move: number;
}

/**
 * The entries of a run, with the inputs that caused its moves.
 * @param inputs the inputs of its tree
 */
export function entriesWithCauses(own: NumberList, moves: readonly Move[], inputs: NumberList): NumberList {
  const entries = new NumberList();
  let next = 0;
  const addOwnBefore = (end: number): void => {
    for (; next < own.length && own.at(next) < end; next += 1) entries.push(own.at(next));
  };
  let known = -1;
  for (const [at] of moves) {
    if (at === known) continue;
    known = at;
    const cause = inputs.at(inputs.countBelow(at + 1) - 1);
    addOwnBefore(cause + 1);
    if (cause > entries.last) entries.push(cause);
  }
  addOwnBefore(Number.MAX_SAFE_INTEGER);
  return entries;
}

/** A list of marks that is built once and then only read by index. */
export class RunMarks {
  readonly #at: Int32Array;
  readonly #move: Int32Array;
  readonly #moves: readonly Move[];
  readonly length: number;

  constructor(entries: NumberList, moves: readonly Move[]) {
    this.length = entries.length + moves.length;
    this.#at = new Int32Array(this.length);
    this.#move = new Int32Array(this.length);
    this.#moves = moves;
    let [entry, move] = [0, 0];
    for (let place = 0; place < this.length; place += 1) {
      const next = moves[move];
      if (entry < entries.length && (next === undefined || entries.at(entry) <= next[0])) {
        this.#at[place] = entries.at(entry++);
        this.#move[place] = -1;
      } else {
        this.#at[place] = next?.[0] ?? 0;
        this.#move[place] = move++;
      }
    }
  }

  get(place: number): RunMark | null {
    const at = this.#at[place];
    const move = this.#move[place];
    if (at === undefined || move === undefined) return null;
    return { at, nth: move < 0 ? 0 : nthOf(this.#moves, move), move };
  }

  /** The last mark at or before a position, or -1. */
  placeOf(moment: Moment): number {
    return lowerBound(this.length, (place) => isUntil(this.get(place), moment)) - 1;
  }
}

/** Whether a mark is at or before a position. */
export const isUntil = (mark: RunMark | null | undefined, { at, moves }: Moment): boolean =>
  mark != null && (mark.at < at || (mark.at === at && mark.nth <= moves));

/** The number of a move after its entry, from 1. */
export function nthOf(moves: readonly Move[], place: number): number {
  const at = moves[place]?.[0] ?? 0;
  return place - lowerBound(moves.length, (other) => (moves[other]?.[0] ?? 0) < at) + 1;
}

export const momentAfter = (at: number): Moment => ({ at, moves: ALL_MOVES });

/** Extends a course: `more` starts where it ended, and has its own indexes of edges and states. */
export function appendCourse(course: Course | null, more: Course): Course {
  if (course === null || more.moves.length === 0) {
    return course === null
      ? more
      : {
          ...more,
          moves: course.moves,
          edges: course.edges,
          states: course.states,
          steps: concatOrSame(course.steps, more.steps),
        };
  }
  const edges = mergeTexts(course.edges, more.edges);
  const states = mergeTexts(course.states, more.states);
  const previous = course.moves.filter(([at]) => at < course.through);
  const fresh = more.moves.filter(([at]) => at >= course.through);
  const shiftedMoves = fresh.map(([at, step, edge, to]): Move => [
    at,
    step,
    edges.place(more.edges[edge]),
    states.place(more.states[to]),
  ]);
  return {
    ...more,
    edges: edges.texts,
    states: states.texts,
    moves: [...previous, ...shiftedMoves],
    steps: concatOrSame(course.steps, more.steps),
  };
}

const concatOrSame = <T>(a: readonly T[], b: readonly T[]): readonly T[] => (b.length >= a.length ? b : a);

function mergeTexts(previous: readonly string[], more: readonly string[]) {
  const texts = [...new Set([...previous, ...more])];
  const places = new Map(texts.map((text, place) => [text, place]));
  return { texts, place: (text = ''): number => places.get(text) ?? 0 };
}
