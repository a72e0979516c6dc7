// Layouts of charts: nothing overlaps, every process computes the same, and no recorded machine can block a service.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  elkGraph,
  LAYOUT_LIMITS,
  LayoutWorker,
  type Layouts,
} from '../../../src/interfaces/inspector/layout-worker.js';
import { readShippedCharts } from '../../../src/system/shipped-charts.js';
import { CHART_METRICS, labelText, labelWidth } from '../../../src/interfaces/inspector/contract/chart-text.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { SESSIONS } from '../../../src/features/sessions/tree/session-tree.js';
import { definitionsOf } from '../../../src/kernel/pinned-policy.js';
import { machineChartOf, chartsOf } from '../../../src/kernel/replay/machine-chart.js';
import { built } from '../../docs/built.js';
import { testPolicy } from '../../fixtures/policy.js';
import { ROOT } from '../../root.js';

const policy = testPolicy();
const charts = chartsOf(JSON.parse(definitionsOf(policy, SESSIONS.root)) as JsonObject);
const laidOut = new Map<string, Layouts>();

const worker = new LayoutWorker();
beforeAll(async () => {
  for (const chart of charts) {
    const layouts = await worker.layOut(chart);
    if (layouts !== null) laidOut.set(chart.machine, layouts);
  }
});
afterAll(() => worker.close());

interface Area {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}
const areaOf = (b: { x: number; y: number; width: number; height: number }): Area => ({
  left: b.x,
  top: b.y,
  right: b.x + b.width,
  bottom: b.y + b.height,
});
/** By more than two pixels, so that boxes that touch do not count. */
const overlap = (a: Area, b: Area): boolean =>
  a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
const segment = ([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number]): Area => ({
  left: Math.min(x1, x2) - 1.1,
  right: Math.max(x1, x2) + 1.1,
  top: Math.min(y1, y2) - 1.1,
  bottom: Math.max(y1, y2) + 1.1,
});

describe.each(charts.flatMap(({ machine }) => [[machine, 'down'] as const, [machine, 'right'] as const]))(
  'the chart of %s, laid out %s',
  (machine, direction) => {
    const chart = charts.find((each) => each.machine === machine)!;
    const layout = () => laidOut.get(machine)![direction];
    const isFrame = (id: string): boolean => chart.nodes.some(({ parent }) => parent === id);

    test('U-05: contains every state and every edge with a target, within its bounds', () => {
      const { boxes, lines, width, height } = layout();
      const rootIsDrawn = chart.edges.some(({ source, target }) => source === '' && target !== null);
      const states = chart.nodes.filter(({ id }) => id !== '' || rootIsDrawn).map(({ id }) => id);
      expect(boxes.map(({ id }) => id).sort()).toEqual(states.sort());
      const edges = chart.edges.filter(({ target }) => target !== null);
      expect(lines.flatMap((line) => line.edges).sort()).toEqual(edges.map(({ id }) => id).sort());
      const texts = edges.filter((edge) => labelText(edge) !== '');
      expect(lines.flatMap(({ labels }) => labels.map(({ edge }) => edge)).sort()).toEqual(
        texts.map(({ id }) => id).sort(),
      );
      const places = lines.flatMap(({ points }) => points);
      for (const area of [...boxes.map(areaOf), ...places.map((point) => segment(point, point))]) {
        expect(area.left).toBeGreaterThanOrEqual(0);
        expect(area.right).toBeLessThanOrEqual(width);
        expect(area.bottom).toBeLessThanOrEqual(height);
      }
    });

    test('U-05: no box overlaps another, and no line crosses one', () => {
      const { boxes, lines } = layout();
      const atoms = boxes.filter(({ id }) => !isFrame(id));
      for (const [n, one] of atoms.entries()) {
        for (const other of atoms.slice(n + 1)) expect(overlap(areaOf(one), areaOf(other))).toBe(false);
        for (const { points, edges } of lines)
          for (const [i, to] of points.slice(1).entries())
            expect([one.id, edges, overlap(areaOf(one), segment(points[i]!, to))]).toEqual([one.id, edges, false]);
      }
    });

    test('U-05: labels overlap no box, and not each other', () => {
      const { boxes, lines } = layout();
      const byId = new Map(chart.edges.map((edge) => [edge.id, edge]));
      const labels = lines.flatMap((line) =>
        line.labels.map(({ edge, x, y }) => {
          const width = labelWidth(byId.get(edge)!) - 8;
          return { edge, area: { left: x - width / 2, right: x + width / 2, top: y - 6, bottom: y + 6 } };
        }),
      );
      for (const [n, { edge, area }] of labels.entries()) {
        const over = labels.slice(n + 1).filter((other) => overlap(area, other.area));
        expect([edge, over.map((other) => other.edge)]).toEqual([edge, []]);
        const below = boxes.filter(({ id }) => !isFrame(id)).filter((box) => overlap(area, areaOf(box)));
        expect([edge, below.map(({ id }) => id)]).toEqual([edge, []]);
      }
    });

    test('U-05: final states come last', () => {
      const { boxes } = layout();
      const endOf = (id: string): number => {
        const { bottom, right } = areaOf(boxes.find((box) => box.id === id)!);
        return direction === 'down' ? bottom : right;
      };
      const top = chart.nodes.filter(({ parent }) => parent === '');
      const finals = top.filter(({ type }) => type === 'final').map(({ id }) => endOf(id));
      for (const { id, type } of top) if (type !== 'final') expect(endOf(id)).toBeLessThan(Math.max(...finals));
      expect(finals.length).toBeGreaterThan(0);
    });
  },
);

test('U-05: the phases of a step are in one column, and a state is 28 pixels high', () => {
  const { boxes } = laidOut.get('step')!.down;
  const phases = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA', 'VALIDATE_ACTION', 'VALIDATE_ARGS'];
  const middles = phases.map((id) => {
    const { x, y, width, height } = boxes.find((box) => box.id === id)!;
    expect(height).toBe(CHART_METRICS.nodeHeight);
    return { x: x + width / 2, y };
  });
  for (const [n, { x, y }] of middles.slice(1).entries()) {
    expect(Math.abs(x - middles[n]!.x)).toBeLessThanOrEqual(2);
    expect(y).toBeGreaterThan(middles[n]!.y);
  }
});

test('U-05: three processes compute the same layout, to the byte, and so does the build', async () => {
  await built();
  const shipped = JSON.stringify([...readShippedCharts().values()]);
  const program = `
    import { readFileSync } from 'node:fs';
    import { LayoutWorker } from './build/compiled/src/interfaces/inspector/layout-worker.js';
    const charts = JSON.parse(readFileSync('dist/charts.json', 'utf8'));
    const worker = new LayoutWorker();
    const made = [];
    for (const { layouts, ...chart } of charts) made.push({ ...chart, layouts: await worker.layOut(chart) });
    process.stdout.write(JSON.stringify(made));
    await worker.close();`;
  const execute = promisify(execFile);
  for (let n = 0; n < 2; n += 1) {
    const { stdout } = await execute(process.execPath, ['--input-type=module', '-e', program], {
      cwd: join(ROOT),
      maxBuffer: 1e7,
    });
    expect(sha256(stdout)).toBe(sha256(shipped));
  }
  expect(readShippedCharts().size).toBe(charts.length);
}, 300_000);

describe('a malicious recorded chart', () => {
  const wide = (states: number, edges: number) => {
    const names = Array.from({ length: states }, (_, n) => `s${n}`);
    const on = (n: number): JsonObject =>
      Object.fromEntries(Array.from({ length: edges }, (_, e) => [`E${e}`, `s${(n * 7 + e * 3 + 1) % states}`]));
    const inner = Object.fromEntries(names.map((name, n) => [name, { on: on(n) }]));
    return machineChartOf('wide', { id: 'wide', initial: 's0', states: inner });
  };

  test('is refused if it is too large', async () => {
    expect(await worker.layOut(wide(LAYOUT_LIMITS.nodes + 1, 1))).toBeNull();
    expect(await worker.layOut(wide(100, 13))).toBeNull();
    const [node] = wide(1, 0).nodes;
    expect(await worker.layOut({ nodes: [{ ...node!, entry: ['x'.repeat(300_000)] }], edges: [] })).toBeNull();
  });

  test('is aborted if it takes too long, and the next one is laid out', async () => {
    const hasty = new LayoutWorker({ ...LAYOUT_LIMITS, ms: 8_000 });
    const [slow, next] = await Promise.all([hasty.layOut(wide(290, 4)), hasty.layOut(charts[0]!)]);
    expect(slow).toBeNull();
    expect(next).not.toBeNull();
    await hasty.close();
  });

  test('blocks others only up to a limit, and does not block the event loop', async () => {
    const one = new LayoutWorker({ ...LAYOUT_LIMITS, waiting: 1 });
    let beats = 0;
    const beat = setInterval(() => (beats += 1), 1);
    const first = one.layOut(wide(30, 2));
    expect(await one.layOut(charts[0]!)).toBeNull();
    expect(await first).not.toBeNull();
    clearInterval(beat);
    // An event loop that is blocked all the time has none.
    expect(beats).toBeGreaterThan(20);
    await one.close();
    expect(await one.layOut(charts[0]!)).toBeNull();
  });

  test('a machine that ELK cannot lay out has no layout, and the thread continues', async () => {
    const [chart] = charts;
    const broken = { ...chart!, edges: [{ ...chart!.edges[0]!, target: 'nowhere at all' }] };
    expect(elkGraph(broken, 'DOWN').edges).toHaveLength(1);
    expect(await worker.layOut(broken)).toBeNull();
    expect(await worker.layOut(chart!)).not.toBeNull();
  });
});
