// The state of the page: rows in columns, runs, the path through a machine, marks, filter, window, address.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AS_REPORTED } from '../../../../src/core/contract/inspection/as-reported.js';
import { HOOK_CALL, UNGATED_CALL } from '../../../../src/features/hooks/comparisons/call-labels.js';
import { packRows } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type {
  RunCreationFacts,
  Chart,
  Course,
  EventRow,
  Tone,
} from '../../../../src/core/contract/inspection/inspection.js';
import { InlineFeed } from '../../../../src/interfaces/inspector/page/data/inline-feed.js';
import {
  toAddress,
  FIRST_VIEW,
  takeToken,
  parseAddress,
  type PageView,
} from '../../../../src/interfaces/inspector/page/store/address.js';
import { alignSequences } from '../../../../src/core/align-sequences.js';
import { FilteredRows } from '../../../../src/interfaces/inspector/page/store/rows/filtered-rows.js';
import { appendCourse } from '../../../../src/interfaces/inspector/page/store/run-marks.js';
import {
  ALL_MOVES,
  ChartIndex,
  movesOf,
  countMovesUntil,
  findUntakenTransitions,
  Path,
} from '../../../../src/interfaces/inspector/page/store/path.js';
import { ProofTracker } from '../../../../src/interfaces/inspector/page/store/proof-tracker.js';
import { countCoverage } from '../../../../src/features/hooks/page/count-coverage.js';
import { Rows } from '../../../../src/interfaces/inspector/page/store/rows/rows.js';
import { Runs, stateOf, type Run } from '../../../../src/interfaces/inspector/page/store/rows/runs.js';
import { ancestorsOf, treeLines } from '../../../../src/interfaces/inspector/page/store/rows/run-lines.js';
import { Store } from '../../../../src/interfaces/inspector/page/store/store.js';
import { guessOutcome, listPhases, findRefusedPhase } from '../../../../src/interfaces/inspector/page/store/steps.js';
import { hueOf, TONES, toneNumber } from '../../../../src/interfaces/inspector/page/store/rows/tones.js';
import { scrollTopFor, rowWindowOf } from '../../../../src/interfaces/inspector/page/store/rows/row-window.js';
import { createDrawing } from '../../../../src/interfaces/inspector/page/views/chart/drawing.js';
import { infoOf } from '../../../fixtures/inspected-tree.js';

const BORN: RunCreationFacts = {
  kind: 'agent',
  parent: 'run_a',
  lane: 'SANDBOX_FILES',
  role: 'SANDBOX_AGENT',
  actor: 'ann',
  case: 'case-1',
  correlation: 'cor',
  link: 'attached',
  pins: { contract: 'v1', lanes: 'l', roles: 'r' },
  request: null,
  retry_of: null,
  executor: null,
  client: null,
};

const row = (log_index: number, of: Partial<EventRow>): EventRow => ({
  log_index,
  seq: log_index,
  run_id: 'run_a',
  tree_id: 'run_a',
  type: 'audit_event',
  label: 'x',
  tone: 'plain',
  time: 1_000 + log_index,
  step: 0,
  hash: log_index.toString(16).padStart(8, '0'),
  state: null,
  creation: null,
  ...of,
});

/** A tree of an orchestrator, its agent and a mediated run, with one step. */
const TREE: readonly EventRow[] = [
  row(0, {
    label: 'created',
    tone: 'created',
    state: 'created',
    creation: { ...BORN, kind: 'orchestrator', parent: null },
  }),
  row(1, { label: 'running', tone: 'running', state: 'running' }),
  row(2, { run_id: 'run_a.1', label: 'created', tone: 'created', state: 'created', creation: BORN }),
  row(3, { run_id: 'run_a.1', label: 'running', tone: 'running', state: 'running' }),
  row(4, { run_id: 'run_a.1', type: 'input', label: 'proposal' }),
  row(5, {
    run_id: 'run_a.1.1',
    label: 'created',
    tone: 'created',
    state: 'created',
    creation: { ...BORN, kind: 'tool_gateway', parent: 'run_a.1', request: 'sandbox.write_file' },
  }),
  row(6, { run_id: 'run_a.1.1', label: 'authz deny', tone: 'deny' }),
  row(7, { run_id: 'run_a.1.1', label: 'denied', tone: 'denied', state: 'denied' }),
  row(8, { run_id: 'run_a.1', type: 'step_trace', label: 'DENIED', tone: 'DENIED', step: 1 }),
  row(9, { run_id: 'run_a.1', label: 'completed', tone: 'completed', state: 'completed' }),
];

function loaded(rows: readonly EventRow[] = TREE) {
  const kept = new Rows(0, rows.length);
  kept.addPage(packRows(rows));
  const runs = new Runs(kept);
  runs.update();
  return { rows: kept, runs };
}

describe('rows', () => {
  test('every row is returned unchanged', () => {
    const { rows } = loaded();
    expect(TREE.map(({ log_index }) => rows.row(log_index))).toEqual(TREE);
    expect([rows.row(-1), rows.row(10)]).toEqual([null, null]);
  });

  test('pages in any order, also repeated, lose and duplicate nothing and leave no gap', () => {
    const rows = new Rows(0, 10);
    expect(rows.addPage(packRows(TREE.slice(6, 8)))).toBe(true);
    expect(rows.addPage(packRows(TREE.slice(0, 3)))).toBe(false);
    expect(rows.addPage(packRows(TREE.slice(9)))).toBe(false);
    expect(rows.addPage(packRows(TREE.slice(7)))).toBe(true);
    expect(rows.addPage(packRows(TREE.slice(7)))).toBe(false);
    expect(rows.addPage(packRows(TREE.slice(2, 7)))).toBe(true);
    expect(rows.addPage(packRows(TREE.slice(0, 2)))).toBe(true);
    expect([rows.first, rows.end]).toEqual([0, 10]);
    expect(TREE.map(({ log_index }) => rows.row(log_index))).toEqual(TREE);
  });

  test('the worst tone of any range is that of its rows', () => {
    const at = (place: number): EventRow =>
      row(place, { tone: TONES[(place * 7) % (place % 9 === 0 ? 14 : 3)] ?? 'plain' });
    const rows = new Rows(3, 3);
    rows.addPage(packRows(Array.from({ length: 200 }, (_, place) => at(place + 3))));
    for (let from = 3; from < 203; from += 5)
      for (let to = from; to <= 203; to += 3) {
        const tones = Array.from({ length: to - from }, (_, place) => rows.tone(from + place));
        expect(rows.worstTone(from, to)).toBe(Math.max(0, ...tones));
      }
  });

  test('every tone has a unique number, and problems have the highest ones', () => {
    const problems: readonly Tone[] = ['VALIDATION_ERROR', 'deny', 'denied', 'DENIED', 'failed', 'EXECUTION_ERROR'];
    expect(problems.map(toneNumber).every((number) => number > toneNumber('cancelled'))).toBe(true);
    expect(new Set(TONES).size).toBe(14);
  });
});

describe('runs', () => {
  test('a session has the state that its own events set, also events that name one of its runs', () => {
    const said = ['start', 'step_issued', 'pause', 'resume', 'spec_complete'];
    const rows = said.map((label, at) =>
      row(at, {
        type: 'session_event',
        tree_id: 'ses_a',
        run_id: label === 'resume' ? 'ses_a.2' : 'ses_a',
        label,
      }),
    );
    const { runs } = loaded(rows);
    const session = runs.byId('ses_a');
    if (session === null) throw new Error('no session');
    expect([-1, 0, 1, 2, 3, 4].map((at) => stateOf(session, at))).toEqual([
      null,
      'running',
      'running',
      'paused',
      'running',
      'completed',
    ]);
    expect([hueOf('paused'), stateOf(runs.byId('ses_a.2') ?? session, 4)]).toEqual(['invalid', null]);
  });

  test('each run has its rows, its state at any position, its parent, and its steps', () => {
    const { runs } = loaded();
    const agent = runs.byId('run_a.1');
    if (agent === null) throw new Error('no agent');
    expect([1, 2, 3, 8, 9].map((at) => stateOf(agent, at))).toEqual([
      null,
      'created',
      'running',
      'running',
      'completed',
    ]);
    expect(agent.traces.at(0)).toBe(8);
    expect(ancestorsOf(runs, 'run_a.1.1')).toEqual(['run_a', 'run_a.1', 'run_a.1.1']);
    expect([runs.size, runs.countUntil(4), runs.countUntil(5)]).toEqual([3, 2, 3]);
  });

  test('the tree omits runs that did not exist at the cursor', () => {
    const { runs } = loaded();
    const all = new Set(['run_a', 'run_a.1']);
    const ids = (at: number) => treeLines(runs, at, all).map(({ run, depth }) => `${depth} ${run.id}`);
    expect(ids(1)).toEqual(['0 run_a']);
    expect(ids(4)).toEqual(['0 run_a', '1 run_a.1']);
    expect(ids(9)).toEqual(['0 run_a', '1 run_a.1', '2 run_a.1.1']);
    expect(treeLines(runs, 9, new Set())).toHaveLength(1);
  });

  test('a later session view is ahead of a position only if entries were added in between', () => {
    const { runs } = loaded([...TREE, row(10, { run_id: 'run_b', tree_id: 'run_b' })]);
    const [a, b] = [runs.byId('run_a')?.tree ?? -1, runs.byId('run_b')?.tree ?? -1];
    // As a file contains it: at the end of the ledger.
    expect([0, 8, 9, 10].map((at) => runs.isAhead(a, 10, at))).toEqual([true, true, false, false]);
    expect([9, 10].map((at) => runs.isAhead(b, 10, at))).toEqual([true, false]);
    // As a service returns it: at the requested position.
    expect([0, 8].map((at) => runs.isAhead(a, at, at))).toEqual([false, false]);
  });

  test('earlier rows that are loaded later give the same runs', () => {
    const whole = loaded();
    const rows = new Rows(0, 10);
    const runs = new Runs(rows);
    rows.addPage(packRows(TREE.slice(6)));
    runs.update();
    rows.addPage(packRows(TREE.slice(0, 6)));
    runs.update();
    const shape = (all: Runs) =>
      treeLines(all, 9, new Set(['run_a', 'run_a.1'])).map(({ run, depth }) => [run.id, depth, run.rows.length]);
    expect(shape(runs)).toEqual(shape(whole.runs));
  });
});

const LAYOUT = { width: 0, height: 0, boxes: [], lines: [] };
const node = (id: string, initial: string | null = null, type?: 'final'): Chart['nodes'][number] => ({
  id,
  name: id.split('.').at(-1) ?? '',
  parent: id === '' ? null : id.split('.').slice(0, -1).join('.'),
  type: type ?? (initial === null ? 'atomic' : 'compound'),
  initial,
  entry: [],
});
const edge = (source: string, event: string, place: number, target: string | null, guard: string | null = null) => ({
  id: `${source}|${event}|${place}`,
  source,
  event,
  place,
  target,
  guard,
  actions: [],
});
const STEP: Chart = {
  hash: 'h',
  machine: 'step',
  nodes: [
    node('', 'RECEIVE'),
    node('RECEIVE'),
    node('PARSE'),
    node('AUTHORIZE', 'AUTHORIZE.authorizing'),
    node('AUTHORIZE.authorizing'),
    node('AUTHORIZE.startingMediatedRun'),
    node('EXECUTE'),
    node('RECORD'),
    node('RESPOND', null, 'final'),
  ],
  edges: [
    edge('RECEIVE', 'always', 1, 'PARSE'),
    edge('PARSE', 'always', 1, 'AUTHORIZE'),
    edge('AUTHORIZE.authorizing', 'always', 0, 'RECORD', 'hasFault'),
    edge('AUTHORIZE.authorizing', 'always', 1, 'AUTHORIZE.startingMediatedRun'),
    edge('AUTHORIZE', 'AGAIN', 0, 'AUTHORIZE'),
    edge('AUTHORIZE.startingMediatedRun', 'APPROVALS_CHANGED', 0, null),
    edge('AUTHORIZE.startingMediatedRun', 'STARTED', 0, 'EXECUTE'),
    edge('EXECUTE', 'done', 0, 'RECORD'),
    edge('RECORD', 'always', 0, 'RESPOND'),
  ],
  layouts: { down: LAYOUT, right: LAYOUT },
};

/** Moves after entries, as pairs of an edge and the state that it leads to. */
function courseOf(...moves: readonly (readonly [at: number, edge: string, to: string])[]): Course {
  const edges = [...new Set(moves.map(([, edge]) => edge))];
  const states = [...new Set(moves.map(([, , to]) => to))];
  return {
    run_id: 'run_a.1',
    tree_id: 'run_a',
    through: 100,
    chart: 'c',
    step_chart: 'h',
    edges,
    states,
    moves: moves.map(([at, edge, to]) => [at, 1, edges.indexOf(edge), states.indexOf(to)]),
    steps: [4],
    cut: null,
  };
}
const REFUSED = courseOf(
  [4, 'RECEIVE|always|1', 'PARSE'],
  [4, 'PARSE|always|1', 'AUTHORIZE.authorizing'],
  [4, 'AUTHORIZE.authorizing|always|0', 'RECORD'],
  [8, 'RECORD|always|0', 'RESPOND'],
);
const pathOf = (course: Course): Path => new Path(new ChartIndex(STEP), course, movesOf(course, 1));

describe('the path through a machine', () => {
  test('has the active state with its ancestors and initial children', () => {
    const path = pathOf(REFUSED);
    expect([...path.active]).toEqual(['RECEIVE']);
    expect([...path.seek(2).active].sort()).toEqual(['AUTHORIZE', 'AUTHORIZE.authorizing']);
    expect([...path.seek(99).active]).toEqual(['RESPOND']);
    expect(path.last).toBe('RECORD|always|0');
  });

  test('has no active and no visited state before the entry at which it starts', () => {
    const path = pathOf(REFUSED);
    path.born = 4;
    const at = (moment: number) => path.seekTo({ at: moment, moves: ALL_MOVES });
    expect([at(3).active.size, path.entered.size, path.taken.size]).toEqual([0, 0, 0]);
    expect([...at(4).active].sort()).toEqual(['RECORD']);
    expect(path.entered.get('RECEIVE')).toBe(1);
    expect([at(2).active.size, path.entered.size, path.taken.size]).toEqual([0, 0, 0]);
    // Without a position, the path has its initial state from the start.
    expect([...path.seek(0).active, ...path.entered.keys()]).toEqual(['RECEIVE', 'RECEIVE']);
  });

  test('lists the transitions that were not taken, those whose event occurred first', () => {
    const said = (made: number) =>
      findUntakenTransitions(pathOf(REFUSED).seek(made)).map(({ edge, hasEventOccurred: came }) => [edge.id, came]);
    expect([said(0), said(1)]).toEqual([[], []]);
    // Transitions out of the active state and of its ancestor are both listed.
    expect(said(2)).toEqual([
      ['AUTHORIZE.authorizing|always|1', true],
      ['AUTHORIZE|AGAIN|0', false],
    ]);
    expect(said(3)).toEqual([]);
    const ahead = findUntakenTransitions(pathOf(courseOf([4, 'RECEIVE|always|1', 'EXECUTE'])).seek(1));
    expect(ahead).toMatchObject([{ edge: { id: 'EXECUTE|done|0' }, hasEventOccurred: false }]);
    const path = pathOf(REFUSED);
    path.born = 4;
    expect(findUntakenTransitions(path.seekTo({ at: 1, moves: 0 }))).toEqual([]);
  });

  test('a position is an entry and a number of moves after it', () => {
    const { moves } = REFUSED;
    const until = (at: number, after: number) => countMovesUntil(moves, { at, moves: after });
    expect([until(3, ALL_MOVES), until(4, 0), until(4, 2), until(4, 9), until(5, 0), until(8, ALL_MOVES)]).toEqual([
      0, 0, 2, 3, 3, 4,
    ]);
  });

  test('moving back and forward in any order gives the same as moving there directly', () => {
    const course = courseOf(
      [4, 'RECEIVE|always|1', 'PARSE'],
      [4, 'PARSE|always|1', 'AUTHORIZE.authorizing'],
      [5, 'AUTHORIZE|AGAIN|0', 'AUTHORIZE.authorizing'],
      [5, 'AUTHORIZE.authorizing|always|1', 'AUTHORIZE.startingMediatedRun'],
      [5, 'AUTHORIZE.startingMediatedRun|APPROVALS_CHANGED|0', 'AUTHORIZE.startingMediatedRun'],
      [6, 'AUTHORIZE.startingMediatedRun|STARTED|0', 'EXECUTE'],
    );
    const state = (path: Path) => [
      [...path.active].sort(),
      [...path.entered].sort(),
      [...path.taken].sort(),
      path.last,
    ];
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 6 }), { minLength: 1 }), (places) => {
        const path = pathOf(course);
        for (const place of places) path.seek(place);
        expect(state(path)).toEqual(state(pathOf(course).seek(places.at(-1) ?? 0)));
      }),
    );
    const whole = pathOf(course).seek(5);
    // Entered, and entered again by its own edge, but not by internal transitions.
    expect([whole.entered.get('AUTHORIZE'), whole.entered.get('AUTHORIZE.startingMediatedRun')]).toEqual([2, 1]);
  });

  test('S0-12: nine phases: the passed ones, the failed one, the skipped ones, and the current one', () => {
    const said = (made: number) =>
      listPhases(pathOf(REFUSED).seek(made), made > 2 ? 'DENIED' : null, true).map(({ state }) => state);
    const middle = ['ahead', 'ahead', 'ahead'];
    expect(said(0)).toEqual(['active', 'ahead', ...middle, 'ahead', 'ahead', 'ahead', 'ahead']);
    expect(said(2)).toEqual(['passed', 'passed', ...middle, 'active', 'ahead', 'ahead', 'ahead']);
    const left = ['skipped', 'skipped', 'skipped'];
    expect(said(3)).toEqual(['passed', 'passed', ...left, 'refused', 'skipped', 'active', 'ahead']);
    expect(said(4)).toEqual(['passed', 'passed', ...left, 'refused', 'skipped', 'passed', 'passed']);
  });

  test('a failure in EXECUTE is recognised by the outcome, an earlier one by the edge', () => {
    const ran = courseOf([4, 'AUTHORIZE.startingMediatedRun|STARTED|0', 'EXECUTE'], [5, 'EXECUTE|done|0', 'RECORD']);
    expect(findRefusedPhase(pathOf(ran).seek(2), 'SUCCESS')).toBe(null);
    expect(findRefusedPhase(pathOf(ran).seek(2), 'EXECUTION_ERROR')).toBe('EXECUTE');
    expect(findRefusedPhase(pathOf(REFUSED).seek(3), null)).toBe('AUTHORIZE');
    expect([guessOutcome('PARSE'), guessOutcome('AUTHORIZE'), guessOutcome('EXECUTE')]).toEqual([
      'VALIDATION_ERROR',
      'DENIED',
      'EXECUTION_ERROR',
    ]);
  });

  test('a course that is requested again is extended by names, not by indexes', () => {
    const [first, rest] = [REFUSED.moves.slice(0, 3), REFUSED.moves.slice(3)];
    const begun: Course = { ...REFUSED, moves: first, through: 5 };
    const more: Course = {
      ...REFUSED,
      edges: ['RECORD|always|0'],
      states: ['RESPOND'],
      moves: rest.map(([at, step]) => [at, step, 0, 0] as const),
    };
    const named = ({ moves, edges, states }: Course) => moves.map(([at, , e, to]) => [at, edges[e], states[to]]);
    expect(named(appendCourse(begun, more))).toEqual(named(REFUSED));
    // Concurrent requests add nothing twice.
    expect(named(appendCourse(appendCourse(begun, more), { ...more, moves: [] }))).toEqual(named(REFUSED));
  });
});

describe('the colouring of a chart', () => {
  test('a step that has not started at the cursor has no visited state, and its initial state only once it has started', async () => {
    const feed = new InlineFeed({
      info: infoOf(TREE.length),
      pages: [packRows(TREE)],
      courses: { 'run_a.1': REFUSED },
      charts: { h: STEP },
      ...{ entries: [], events: {}, artifacts: {}, steps: {}, sessions: {}, whys: {} },
    });
    const store = new Store(feed, new ProofTracker(null));
    await store.open();
    const run = store.runs.byId('run_a.1');
    if (run === null) throw new Error('no run');
    const drawn = (at: number, moves: number, step = 1) => {
      store.goTo({ at, moves });
      const drawing = createDrawing(store, run, step);
      return drawing && [[...drawing.states], [...drawing.active], [...drawing.entered.keys()], [...drawing.taken]];
    };
    for (let tries = 0; tries < 1_000 && drawn(3, 0) === null; tries += 1) await Promise.resolve();
    expect(drawn(3, ALL_MOVES)).toEqual([[], [], [], []]);
    // A step that does not exist has not started either.
    expect(drawn(9, ALL_MOVES, 2)).toEqual([[], [], [], []]);
    expect(drawn(4, 0)).toEqual([[['RECEIVE', 'running']], ['RECEIVE'], ['RECEIVE'], []]);
    expect(drawn(9, ALL_MOVES)?.[1]).toEqual(['RESPOND']);
    expect(drawn(3, ALL_MOVES)).toEqual([[], [], [], []]);
  });
});

describe('the lists', () => {
  test('words match event, outcome, run and hash, and all of them must match', () => {
    const { rows } = loaded();
    const found = (words: string, problems = false) => {
      const { places } = new FilteredRows(rows, { words, problems }).update();
      return Array.from({ length: places.length }, (_, place) => places.at(place));
    };
    expect(found('deny')).toEqual([6]);
    expect(found('DENIED')).toEqual([7, 8]);
    expect(found('write_file created')).toEqual([5]);
    expect(found('00000009')).toEqual([9]);
    expect(found('', true)).toEqual([6, 7, 8]);
    expect(found('nothing')).toEqual([]);
  });

  test('rows that arrive later, newer or earlier, are found too', () => {
    const rows = new Rows(0, 10);
    rows.addPage(packRows(TREE.slice(4, 7)));
    const found = new FilteredRows(rows, { words: '', problems: true });
    expect(found.update().places.length).toBe(1);
    rows.addPage(packRows(TREE.slice(7)));
    rows.addPage(packRows(TREE.slice(0, 4)));
    expect(found.update().places.length).toBe(3);
  });

  test('two sequences are aligned: each item once, both orders preserved, common items together', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 14 });
    fc.assert(
      fc.property(letters, letters, (a, b) => {
        const rows = alignSequences(a, b);
        const of = (side: 'a' | 'b') => rows.map((one) => one[side]).filter((place) => place !== null);
        expect([of('a'), of('b')]).toEqual([a.map((_, place) => place), b.map((_, place) => place)]);
        expect(rows.every((one) => one.a === null || one.b === null || a[one.a] === b[one.b])).toBe(true);
      }),
    );
    const both = alignSequences(['a', 'b', 'c', 'd'], ['a', 'b', 'x', 'd']).filter(
      ({ a, b }) => a !== null && b !== null,
    );
    expect(both).toHaveLength(3);
  });

  test('only the visible rows are drawn, however long the list is', () => {
    expect(rowWindowOf(100_000, 24_000, 480)).toEqual({ from: 997, to: 1_023 });
    expect(rowWindowOf(3, 0, 480)).toEqual({ from: 0, to: 3 });
    expect(rowWindowOf(3, 9_999, 480)).toEqual({ from: 3, to: 3 });
    expect([scrollTopFor(5, 0, 480), scrollTopFor(20, 0, 480), scrollTopFor(19, 480, 480)]).toEqual([0, 24, 456]);
    expect(scrollTopFor(1_000, 0, 480)).toBe(24_000 - 240);
  });
});

describe('the address', () => {
  const views: fc.Arbitrary<PageView> = fc.record({
    run: fc.option(fc.constantFrom('run_a', 'ses_Ab-9.1.2'), { nil: null }),
    step: fc.nat({ max: 400 }),
    tab: fc.constantFrom('run', 'step', 'story', 'time', 'session'),
    at: fc.option(fc.record({ at: fc.nat({ max: 999_999 }), moves: fc.constantFrom(0, 3, ALL_MOVES) }), { nil: null }),
    filter: fc.string({ maxLength: 40 }),
    own: fc.boolean(),
    problems: fc.boolean(),
    cmp: fc.option(fc.record({ run: fc.constant('run_b.1'), step: fc.nat({ max: 9 }) }), { nil: null }),
    theme: fc.constantFrom('auto', 'light', 'dark'),
  });

  test('contains everything that differs from the first view, and nothing else', () => {
    fc.assert(fc.property(views, (view) => expect(parseAddress(`#${toAddress(view)}`)).toEqual(view)));
    expect(toAddress(FIRST_VIEW)).toBe('');
    expect(toAddress({ ...FIRST_VIEW, run: 'r', cmp: { run: 'run_b', step: 8 } })).toBe('run=r&cmp=run_b:8');
  });

  test('an invalid address gives the first view', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseAddress(text)));
    expect(parseAddress('#at=-1&step=x&tab=nope&theme=blue&cmp=../..')).toEqual(FIRST_VIEW);
  });

  test('the token is removed from it', () => {
    expect(takeToken('#run=a&token=s3cret&step=2')).toEqual({ token: 's3cret', rest: 'run=a&step=2' });
    expect(takeToken('#run=a')).toEqual({ token: null, rest: 'run=a' });
  });
});

test('the facts of a run come with the row that creates it, and no later row changes them', () => {
  const rows = new Rows(0, 0);
  rows.addPage(packRows([row(0, { label: 'created', tone: 'created', state: 'created', creation: BORN })]));
  const lie = { ...BORN, role: 'ATTORNEY_ADMIN' };
  const page = packRows([row(1, { label: 'running', tone: 'running', state: 'running' })]);
  rows.addPage({ ...page, rows: page.rows.map((tuple) => [...tuple, lie] as unknown as (typeof page.rows)[number]) });
  expect(rows.creations.get(rows.run(0))).toEqual(BORN);
  rows.addPage(packRows([row(2, { label: 'created', tone: 'created', state: 'created', creation: lie })]));
  expect(rows.creations.get(rows.run(0))).toEqual(BORN);
});

describe('the coverage of a session of a coding agent', () => {
  const CALLED: RunCreationFacts = { ...BORN, kind: 'tool_gateway', parent: 'run_a.1', executor: 'caller' };
  const agent = (at: number, of: Partial<EventRow>): EventRow => row(at, { run_id: 'run_a.1', ...of });
  const called = (at: number, id: string, of: Partial<EventRow>): EventRow =>
    row(at, { run_id: `run_a.1.${id}`, ...of });
  const born = { label: 'created', tone: 'created', state: 'created' } as const;
  const ROWS = [
    row(0, { ...born, creation: { ...BORN, kind: 'orchestrator', parent: null } }),
    agent(1, { ...born, creation: BORN }),
    agent(2, { type: 'input', label: HOOK_CALL }),
    called(3, '1', { ...born, creation: CALLED }),
    called(4, '1', { label: 'running', tone: 'running', state: 'running' }),
    agent(5, { type: 'step_trace', label: 'SUCCESS', tone: 'SUCCESS', step: 1 }),
    called(6, '1', { label: `tool_call success${AS_REPORTED}`, state: 'completed' }),
    agent(7, { type: 'input', label: HOOK_CALL }),
    called(8, '2', { ...born, creation: CALLED }),
    called(9, '2', { label: 'running', tone: 'running', state: 'running' }),
    called(10, '2', { label: 'failed', tone: 'failed', state: 'failed' }),
    agent(11, { type: 'input', label: HOOK_CALL }),
    called(12, '3', { ...born, creation: CALLED }),
    called(13, '3', { label: 'denied', tone: 'denied', state: 'denied' }),
    agent(14, { type: 'input', label: UNGATED_CALL }),
  ];

  test('is counted up to the position', () => {
    const { rows, runs } = loaded(ROWS);
    const root = runs.byId('run_a') as Run;
    const at = (end: number) => countCoverage(rows, runs, root, end);
    expect(at(1)).toBe(null);
    const one = {
      gated: 1,
      allowed: 1,
      denied: 0,
      approvals: 0,
      reported: 0,
      unknown: 0,
      open: 1,
      ungated: 0,
      undecided: 0,
    };
    expect(at(5)).toEqual(one);
    expect(at(6)).toEqual({ ...one, open: 0, reported: 1 });
    expect(at(14)).toEqual({ ...one, gated: 3, allowed: 2, denied: 1, open: 0, reported: 1, unknown: 1, ungated: 1 });
  });

  test('is null for a tree without calls of a coding agent', () => {
    const { rows, runs } = loaded();
    expect(countCoverage(rows, runs, runs.byId('run_a') as Run, 9)).toBe(null);
  });
});
