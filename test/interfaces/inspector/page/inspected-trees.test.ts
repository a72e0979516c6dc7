// What the page shows of generated and governed trees: which input caused a move, what needs an approval, how long an
// open run lasts, and which runs can be compared.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { NEEDS_APPROVAL } from '../../../../src/core/contract/inspection/needs-approval.js';
import type { Entry } from '../../../../src/core/contract/run/entry.js';
import type { ListItem } from '../../../../src/interfaces/inspector/page/store/item-lists.js';
import { FilteredRows } from '../../../../src/interfaces/inspector/page/store/rows/filtered-rows.js';
import { displayStateOf, kindOf, stateOf } from '../../../../src/interfaces/inspector/page/store/rows/runs.js';
import { listSpans } from '../../../../src/interfaces/inspector/page/store/rows/run-lines.js';
import { hueOf, isProblem } from '../../../../src/interfaces/inspector/page/store/rows/tones.js';
import { outcomeOf } from '../../../../src/interfaces/inspector/page/store/steps.js';
import type { Store } from '../../../../src/interfaces/inspector/page/store/store.js';
import { Tree } from '../../../../src/kernel/tree.js';
import { GovernedTree, governedPolicy } from '../../../fixtures/governed.js';
import { inspectedTree, rowsOf } from '../../../fixtures/inspected-tree.js';
import { randomTree } from '../../../fixtures/random-tree.js';
import { AGENT, TREE, type TreeDriver } from '../../../fixtures/tree.js';

const SEEDS = fc.integer({ min: 0, max: 100_000 });

/** The list of one run once its course is here. */
async function listOf(store: Store, run_id: string): Promise<readonly ListItem[]> {
  store.change({ run: run_id, own: true });
  const items = (): readonly ListItem[] => {
    const { length, get } = store.lists.list.value;
    return Array.from({ length }, (_, place) => get(place)).filter((item) => item !== null);
  };
  items();
  for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
  return items();
}

/** For each run, the input of each of its moves, in order: found by deciding the inputs again, not from a course. */
function causesOf(driver: TreeDriver): ReadonlyMap<string, readonly number[]> {
  const causes = new Map<string, number[]>();
  let input = 0;
  const tree = new Tree(driver.tree_id, {
    interpreter: 'table-driven',
    observer: {
      onEvent: () => undefined,
      onSpawn: () => undefined,
      onTransition: (actor) => {
        const run_id = actor.replace(/\/step$/, '');
        causes.set(run_id, [...(causes.get(run_id) ?? []), input]);
      },
    },
  });
  for (const one of driver.inputs) input += tree.decide(one).entries.length;
  return causes;
}

describe('the list of a run', () => {
  test('each move stands under the input that caused it, in every generated tree', async () => {
    await fc.assert(
      fc.asyncProperty(SEEDS, async (seed) => {
        const driver = randomTree(seed);
        const { entries } = driver;
        const store = await inspectedTree(driver);
        let moves = 0;
        for (const [run_id, expected] of causesOf(driver)) {
          if (store.runs.byId(run_id) === null) continue;
          const found: number[] = [];
          let cause = -1;
          for (const { at, move } of await listOf(store, run_id)) {
            if (move >= 0) found.push(cause);
            else if (entries[at]?.entry.type === 'input') cause = at;
          }
          expect({ run_id, found }).toEqual({ run_id, found: expected });
          moves += found.length;
        }
        expect(moves).toBeGreaterThan(0);
      }),
      { numRuns: 20 },
    );
  });

  test('lists in order, each position once, and finds each item at its own position', async () => {
    await fc.assert(
      fc.asyncProperty(SEEDS, async (seed) => {
        const store = await inspectedTree(randomTree(seed));
        const run_id = `run_random${seed}.1`;
        if (store.runs.byId(run_id) === null) return;
        const items = await listOf(store, run_id);
        const places = items.map(({ at, nth }) => store.lists.list.value.placeOf({ at, moves: nth }));
        expect(places).toEqual(items.map((_, place) => place));
      }),
      { numRuns: 8 },
    );
  });
});

const APPROVALS = (subject: string): string =>
  `approvals:\n  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`;
const GO_ON = { actions: [['on_child_failure: fail', 'on_child_failure: continue']] } as const;

/** An agent whose call needs an approval, and gets it. */
function governed(): GovernedTree {
  const d = new GovernedTree(governedPolicy(APPROVALS('CALL_TOOL'), GO_ON)).working();
  d.call('billing.charge', { amount: 2_000 });
  return d;
}
const bodyAt = (d: TreeDriver, at: number): Entry['body'] => (d.entries[at]?.entry as Entry).body;
const find = (d: TreeDriver, is: (entry: Entry) => boolean): number => d.entries.findIndex(({ entry }) => is(entry));

describe('D7: a decision that waits for an approval', () => {
  test('is shown as one that needs approval, while the recorded outcome stays DENIED', async () => {
    const d = governed();
    const rows = rowsOf(d.entries);
    const trace = find(d, ({ type }) => type === 'step_trace');
    expect(bodyAt(d, trace)).toMatchObject({ outcome: 'DENIED', cause: 'APPROVAL_REQUIRED' });
    expect(rows[trace]).toMatchObject({ label: 'needs approval', tone: 'needs approval', step: 1 });
    const authz = find(d, ({ type, body }) => type === 'audit_event' && body.authz?.rule_id === 'approval.required');
    expect(bodyAt(d, authz)).toMatchObject({ outcome: 'deny' });
    expect(rows[authz]).toMatchObject({ label: 'authz needs approval', tone: 'needs approval', state: null });
    const store = await inspectedTree(d);
    const [agent, call] = [store.runs.byId(AGENT), store.runs.byId(`${AGENT}.1`)];
    if (agent === null || call === null) throw new Error('no runs');
    const end = d.entries.length - 1;
    expect([outcomeOf(store.rows, agent, 1, end), displayStateOf(call, end)]).toEqual([NEEDS_APPROVAL, NEEDS_APPROVAL]);
    expect([stateOf(call, end), hueOf(NEEDS_APPROVAL), isProblem(NEEDS_APPROVAL)]).toEqual([
      'denied',
      'waiting',
      false,
    ]);
    // Both words find it.
    for (const words of ['needs', 'DENIED']) {
      const { places } = new FilteredRows(store.rows, { words, problems: false }).update();
      expect(Array.from({ length: places.length }, (_, place) => places.at(place))).toContain(trace);
    }
  });

  test('nothing else is shown so: not the vote, nor the approved call, nor a denial for another reason', () => {
    const d = governed();
    d.vote(d.digests[0] ?? '');
    d.call('billing.charge', { amount: 2_000 });
    d.done(`${AGENT}.2`);
    d.call('shell.run');
    const shown = rowsOf(d.entries).filter(({ tone }) => tone === NEEDS_APPROVAL);
    expect(shown.map(({ label }) => label)).toEqual(['authz needs approval', NEEDS_APPROVAL, NEEDS_APPROVAL]);
    expect(
      rowsOf(d.entries)
        .filter(({ step }) => step > 0)
        .map(({ label }) => label),
    ).toEqual([NEEDS_APPROVAL, 'SUCCESS', 'DENIED']);
  });

  test('a run of a person needs approval while it waits in created, and has its own state from then on', async () => {
    const d = new GovernedTree(governedPolicy(APPROVALS('promotion'), GO_ON)).working();
    d.promote();
    const waiting = d.entries.length - 1;
    d.vote(d.digests[0] ?? '', { run_id: `${TREE}.2` });
    const store = await inspectedTree(d);
    const run = store.runs.byId(`${TREE}.2`);
    if (run === null) throw new Error('no promotion');
    expect([stateOf(run, waiting), displayStateOf(run, waiting)]).toEqual(['created', NEEDS_APPROVAL]);
    expect(displayStateOf(run, d.entries.length - 1)).toBe(stateOf(run, d.entries.length - 1));
    expect(displayStateOf(run, d.entries.length - 1)).not.toBe(NEEDS_APPROVAL);
  });
});

describe('the spans of a tree', () => {
  test('an open run lasts until the time of the shown position, and an ended one until its end', async () => {
    await fc.assert(
      fc.asyncProperty(SEEDS, fc.nat(), fc.nat({ max: 10_000_000 }), async (seed, place, later) => {
        const store = await inspectedTree(randomTree(seed));
        const { rows, runs } = store;
        const root = runs.byId(`run_random${seed}`);
        if (root === null) throw new Error('no root');
        const at = place % rows.end;
        const now = rows.time(at) + later;
        for (const { run, from, to, ended } of listSpans(rows, runs, root, { at, now })) {
          const state = stateOf(run, at);
          expect(ended).toBe(state !== null && !['created', 'running'].includes(state));
          const changed = Array.from({ length: run.changed.length }, (_, nth) => run.changed.at(nth));
          const end = changed.filter((one) => one <= at).at(-1) ?? -1;
          expect(to - from).toBe((ended ? rows.time(end) : now) - rows.time(run.rows.at(0)));
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe('a comparison', () => {
  test('is offered and accepted only for runs of one kind, whatever an address names', async () => {
    await fc.assert(
      fc.asyncProperty(SEEDS, async (seed) => {
        const store = await inspectedTree(randomTree(seed, { inputs: 12 }));
        const ids = [
          ...new Set(Array.from({ length: store.rows.end }, (_, at) => store.rows.ids.at(store.rows.run(at)))),
        ];
        const kind = (id: string): string => {
          const run = store.runs.byId(id);
          return run === null ? '' : kindOf(store.rows, run);
        };
        for (const own of ids) {
          store.change({ run: own, step: 0, cmp: null, tab: 'run' });
          const others = ids.filter((id) => id !== own && kind(id) === kind(own));
          const steps = store.runs.byId(own)?.traces.length ?? 0;
          expect(store.hasComparison).toBe(others.length > 0 || steps > 1);
          for (const other of ids) {
            store.isChoosingComparison.value = true;
            store.select(other);
            const isLike = kind(other) === kind(own);
            expect(store.view.value.run).toBe(own);
            expect(store.isChoosingComparison.value).toBe(!isLike);
            expect(store.view.value.cmp?.run ?? null).toBe(isLike && other !== own ? other : null);
            store.isChoosingComparison.value = false;
            store.change({ cmp: { run: other, step: 0 } });
            expect(store.comparison.value !== null).toBe(isLike);
            store.change({ cmp: null });
          }
        }
      }),
      { numRuns: 6 },
    );
  });
});
