// The colouring of a chart: which states and edges were taken, how often, and in which colour.

import type { ChartIndex, Path } from '../../store/path.js';
import { momentAfter } from '../../store/run-marks.js';
import type { DisplayState } from '../../store/rows/rows.js';
import { displayStateOf, firstEntryOf, type Run } from '../../store/rows/runs.js';
import { finalOutcome, guessOutcome, isInFinalState, findRefusalMove, findRefusedPhase } from '../../store/steps.js';
import type { Store } from '../../store/store.js';
import { hueOf, type Hue } from '../../store/rows/tones.js';
import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';
import { RUN_STATES } from '../../../../../core/contract/run/run-context.js';

export type Side = 'a' | 'b' | 'both';

export interface Drawing {
  readonly index: ChartIndex;
  readonly active: ReadonlySet<string>;
  /** How often each state was entered. */
  readonly entered: ReadonlyMap<string, number>;
  /** Edges that were taken, with their colour. */
  readonly taken: ReadonlyMap<string, Hue>;
  readonly states: ReadonlyMap<string, Hue>;
  readonly last: string;
  /** In a comparison, which side has taken an edge or entered a state. */
  readonly sides: { readonly edges: ReadonlyMap<string, Side>; readonly states: ReadonlyMap<string, Side> } | null;
}

export function createDrawing(store: Store, run: Run, step: number): Drawing | null {
  const path = store.courses.path(run, step);
  if (path === null) return null;
  const { at } = store.cursor.value;
  const begun = step === 0 ? firstEntryOf(run) <= at : step <= store.stepAt(at);
  path.seekTo(begun ? store.cursor.value : momentAfter(-1));
  const colours = step === 0 ? runColours(path, displayStateOf(run, at)) : stepColours(store, run, step, path);
  const active = begun ? new Set(path.active) : new Set<string>();
  return {
    index: path.index,
    active,
    entered: new Map(begun ? path.entered : []),
    ...colours,
    last: path.last,
    sides: null,
  };
}

type Colours = Pick<Drawing, 'taken' | 'states'>;

/** Colours a run's machine: blue for its path, and the colour of its final state for the edge that led there. */
function runColours(path: Path, shown: DisplayState | null): Colours {
  const hueAt = (id: string): Hue =>
    shown === NEEDS_APPROVAL && path.active.has(id) ? hueOf(shown) : (stateHue(path.index, id) ?? 'running');
  const taken = new Map<string, Hue>();
  const states = new Map<string, Hue>();
  for (const edge of path.taken.keys()) {
    const target = path.index.edges.get(edge)?.target ?? '';
    taken.set(edge, hueAt(target));
  }
  for (const state of path.entered.keys()) states.set(state, hueAt(state));
  return { taken, states };
}

/** The colour of a top-level state with the name of a run state, or of a final state of a session. */
function stateHue(index: ChartIndex, id: string): Hue | null {
  const node = index.nodes.get(id);
  const named = RUN_STATES.find((state) => state === id);
  if (named !== undefined && named !== 'running') return hueOf(named);
  if (id === 'paused') return 'invalid';
  return node?.type === 'final' && id === 'ended' ? 'cancelled' : null;
}

/** Colours a step: green for passed phases; from the failure on, the colour of its outcome. */
function stepColours(store: Store, run: Run, step: number, path: Path): Colours {
  const outcome = finalOutcome(store.rows, run, step);
  const refused = findRefusedPhase(path, outcome);
  const from = refused === null ? Number.MAX_SAFE_INTEGER : findRefusalMove(path);
  const wrong = refused === null ? 'completed' : hueOf(outcome ?? guessOutcome(refused));
  const taken = new Map<string, Hue>();
  const states = new Map<string, Hue>();
  // Its initial states are active from the start.
  if (path.entered.size > 0) for (const state of path.index.within('')) states.set(state, 'completed');
  for (let place = 0; place < path.movesMade; place += 1) {
    const id = path.edgeOf(path.moves[place]);
    const hue = place < from ? 'completed' : wrong;
    taken.set(id, hue);
    const target = path.index.edges.get(id)?.target;
    if (target != null) for (const state of path.index.within(target)) if (!states.has(state)) states.set(state, hue);
  }
  // The active state is in progress, unless the step was rejected or has ended.
  if (!isInFinalState(path) && refused === null) for (const state of path.active) states.set(state, 'running');
  return { taken, states };
}

/** Two complete paths on one chart. Null while one of them is unknown, or if they belong to different machines. */
export function createComparison(
  store: Store,
  run: Run,
  step: number,
  cmp: { readonly run: string; readonly step: number },
): Drawing | null {
  const other = store.runs.byId(cmp.run);
  const a = store.courses.path(run, step)?.seekTo(store.cursor.value);
  if (a === undefined) return null;
  const [aEdges, aStates] = [new Set(a.taken.keys()), new Set(a.entered.keys())];
  const b = store.courses.path(other, cmp.step)?.seek(Number.MAX_SAFE_INTEGER);
  if (b === undefined) return null;
  const edges = sidesOf(aEdges, new Set(b.taken.keys()));
  const states = sidesOf(aStates, new Set(b.entered.keys()));
  return {
    index: a.index,
    active: new Set(),
    entered: new Map(),
    taken: new Map([...edges.keys()].map((id) => [id, 'plain'])),
    states: new Map([...states.keys()].map((id) => [id, 'plain'])),
    last: '',
    sides: { edges, states },
  };
}

const sidesOf = (a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlyMap<string, Side> =>
  new Map([...new Set([...a, ...b])].map((id) => [id, a.has(id) ? (b.has(id) ? 'both' : 'a') : 'b']));
