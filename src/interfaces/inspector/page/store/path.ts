// The path through a machine up to a position: its active state, its visited states and edges, and how often. Moving to
// a near position makes or undoes a few moves, and never repeats the whole path.

import type { Chart, ChartEdge, ChartNode, Course, Move } from '../../../../core/contract/inspection/inspection.js';
import { lowerBound } from './rows/number-list.js';

/** A position: an entry, and a number of moves after it. */
export interface Moment {
  readonly at: number;
  readonly moves: number;
}
export const ALL_MOVES = Number.MAX_SAFE_INTEGER;

/** The moves of the run itself, or of one of its steps. */
export const movesOf = (course: Course, step: number): readonly Move[] =>
  course.moves.filter(([, moveStep]) => moveStep === step);

/** How many of all moves of a course, not only of one step, are at or before a position. */
export function countMovesUntil(moves: readonly Move[], { at, moves: after }: Moment): number {
  const before = lowerBound(moves.length, (place) => (moves[place]?.[0] ?? 0) < at);
  const behind = lowerBound(moves.length, (place) => (moves[place]?.[0] ?? 0) <= at);
  return Math.min(behind, before + after);
}

/** A chart, with its nodes and edges by id. */
export class ChartIndex {
  readonly chart: Chart;
  readonly nodes: ReadonlyMap<string, ChartNode>;
  readonly edges: ReadonlyMap<string, ChartEdge>;
  readonly #children = new Map<string, ChartNode[]>();

  constructor(chart: Chart) {
    this.chart = chart;
    this.nodes = new Map(chart.nodes.map((node) => [node.id, node]));
    this.edges = new Map(chart.edges.map((edge) => [edge.id, edge]));
    for (const node of chart.nodes) {
      if (node.parent !== null) this.#children.set(node.parent, [...this.childrenOf(node.parent), node]);
    }
  }

  childrenOf(id: string): readonly ChartNode[] {
    return this.#children.get(id) ?? [];
  }

  /**
   * The active states when the machine is in `id`: that state, its ancestors, and the states that it enters initially.
   */
  within(id: string): readonly string[] {
    const found: string[] = [];
    for (let at: string | null = id; at !== null; at = this.nodes.get(at)?.parent ?? null) found.push(at);
    this.#down(id, found);
    return found.filter((state) => state !== '');
  }

  #down(id: string, into: string[]): void {
    const node = this.nodes.get(id);
    if (node === undefined || node.type === 'atomic' || node.type === 'final') return;
    for (const child of this.childrenOf(id)) {
      if (child.id !== node.initial && child.name !== node.initial) continue;
      into.push(child.id);
      this.#down(child.id, into);
    }
  }
}

const NO_STATES: ReadonlySet<string> = new Set();

export class Path {
  readonly index: ChartIndex;
  /** The course of this path. */
  readonly course: Course;
  readonly moves: readonly Move[];
  /** The entry at which the path starts: before it, no state is active. */
  born = 0;
  #hasBegun = true;
  /** The number of moves that have been made. */
  movesMade = 0;
  readonly entered = new Map<string, number>();
  readonly taken = new Map<string, number>();
  /** The active state before each move, so that the move can be undone. */
  readonly #enteredBy: (readonly string[])[] = [];
  /** The places of its moves among all moves of the course, which is what positions count. */
  readonly #places: readonly number[];
  active: ReadonlySet<string>;
  readonly #activeBefore: ReadonlySet<string>[] = [];

  constructor(index: ChartIndex, course: Course, moves: readonly Move[]) {
    this.index = index;
    this.course = course;
    this.moves = moves;
    const own = new Set(moves);
    this.#places = course.moves.flatMap((move, place) => (own.has(move) ? [place] : []));
    this.active = NO_STATES;
    this.#begin();
  }

  #begin(): void {
    this.#hasBegun = true;
    this.active = new Set(this.index.within(''));
    for (const state of this.active) this.entered.set(state, 1);
  }

  /** Moves to where `made` moves have been made. */
  seek(movesMade: number): this {
    if (!this.#hasBegun) this.#begin();
    while (this.movesMade < movesMade && this.movesMade < this.moves.length) this.#forward();
    while (this.movesMade > movesMade && this.movesMade > 0) this.#back();
    return this;
  }

  seekTo(moment: Moment): this {
    if (moment.at >= this.born) {
      const made = countMovesUntil(this.course.moves, moment);
      return this.seek(lowerBound(this.#places.length, (place) => (this.#places[place] ?? 0) < made));
    }
    this.seek(0);
    this.#hasBegun = false;
    this.active = NO_STATES;
    this.entered.clear();
    return this;
  }

  edgeOf(move: Move | undefined): string {
    return move === undefined ? '' : (this.course.edges[move[2]] ?? '');
  }
  get last(): string {
    return this.edgeOf(this.moves[this.movesMade - 1]);
  }

  #forward(): void {
    const move = this.moves[this.movesMade];
    if (move === undefined) return;
    const edge = this.edgeOf(move);
    const target = this.index.edges.get(edge)?.target ?? null;
    const now = target === null ? this.active : new Set(this.index.within(this.course.states[move[3]] ?? ''));
    const again = target !== null && this.active.has(target) && now.has(target) ? this.index.within(target) : [];
    const entering = [...now].filter(
      (state) => !this.active.has(state) || (again.includes(state) && isInside(state, target)),
    );
    for (const state of entering) this.entered.set(state, (this.entered.get(state) ?? 0) + 1);
    this.taken.set(edge, (this.taken.get(edge) ?? 0) + 1);
    this.#enteredBy.push(entering);
    this.#activeBefore.push(this.active);
    this.active = now;
    this.movesMade += 1;
  }

  #back(): void {
    this.movesMade -= 1;
    decrement(this.taken, this.edgeOf(this.moves[this.movesMade]));
    for (const state of this.#enteredBy.pop() ?? []) decrement(this.entered, state);
    this.active = this.#activeBefore.pop() ?? NO_STATES;
  }
}

const isInside = (state: string, moveStep: string | null): boolean =>
  state === moveStep || state.startsWith(`${moveStep ?? ''}.`);

function decrement(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

/** A transition that a machine could have taken and did not take. */
export interface UntakenTransition {
  readonly edge: ChartEdge;
  /** Whether its event occurred and another transition was taken: then its guard failed, or an earlier one held. */
  readonly hasEventOccurred: boolean;
}

/** Every edge out of the active states of a path at the cursor, except the one that it took next. */
export function findUntakenTransitions(path: Path): readonly UntakenTransition[] {
  const next = path.moves[path.movesMade];
  const taken = path.index.edges.get(path.edgeOf(next));
  const found = path.index.chart.edges.filter(({ id, source }) => {
    const isActive = source === '' ? path.active.size > 0 : path.active.has(source);
    return isActive && id !== taken?.id;
  });
  const all = found.map((edge) => ({
    edge,
    hasEventOccurred: edge.event === taken?.event && edge.source === taken.source,
  }));
  // Transitions that were tried come first.
  return [
    ...all.filter(({ hasEventOccurred }) => hasEventOccurred),
    ...all.filter(({ hasEventOccurred }) => !hasEventOccurred),
  ];
}
