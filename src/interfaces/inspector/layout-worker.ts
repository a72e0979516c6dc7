// Lays out charts in a separate thread: it takes from a tenth of a second to many seconds, and a chart comes from an
// untrusted ledger. So its size is limited, charts are laid out one at a time, and a layout that takes too long is
// killed.

import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { ElkExtendedEdge, ElkNode, LayoutOptions } from 'elkjs';
import type { Box, Chart, ChartEdge, ChartLine, ChartNode, Layout } from '../../core/contract/inspection/inspection.js';
import { CHART_METRICS, labelText, labelWidth, nodeWidth, titleWidth } from './contract/chart-text.js';

export type Layouts = Chart['layouts'];

export interface LayoutLimits {
  readonly nodes: number;
  readonly edges: number;
  /** Total length of all names, events, guards and actions. */
  readonly chars: number;
  /** Timeout for one direction of one chart, in ms. */
  readonly ms: number;
  /** Maximum number of charts in the queue; more are refused. */
  readonly waiting: number;
}
export const LAYOUT_LIMITS: LayoutLimits = { nodes: 300, edges: 1_200, chars: 200_000, ms: 40_000, waiting: 16 };

const HEAP_MB = 512;

/**
 * The program of the thread. It is a string because this library runs from many files, from one bundle, and from its
 * sources: a separate file would have another path each time.
 */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads');
  const elk = new (require(workerData))();
  parentPort.on('message', (graph) => {
    elk.layout(graph).then((laid) => parentPort.postMessage({ laid }), () => parentPort.postMessage({ laid: null }));
  });
`;

/** Lays out charts. The thread runs from the first request until `close`, and does not keep the process running. */
export class LayoutWorker {
  readonly #limits: LayoutLimits;
  #worker: Worker | null = null;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(limits: LayoutLimits = LAYOUT_LIMITS) {
    this.#limits = limits;
  }

  /** @returns null for a chart that is too large, takes too long, or cannot be laid out */
  async layOut(chart: DrawableChart): Promise<Layouts | null> {
    if (!this.#isBounded(chart) || this.#waiting >= this.#limits.waiting) return null;
    this.#waiting += 1;
    const laid = this.#last.then(() => this.#layOutBoth(chart));
    this.#last = laid.catch(() => undefined);
    try {
      return await laid;
    } finally {
      this.#waiting -= 1;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#kill();
  }

  async #layOutBoth(chart: DrawableChart): Promise<Layouts | null> {
    const roomy = await this.#layOutOne(chart, 'DOWN');
    const isTall = roomy !== null && roomy.height > roomy.width;
    const down = isTall ? await this.#layOutOne(chart, 'DOWN', 'dense') : roomy;
    const right = down === null ? null : await this.#layOutOne(chart, 'RIGHT');
    return down === null || right === null ? null : { down, right };
  }

  async #layOutOne(chart: DrawableChart, direction: Direction, spacing?: Spacing): Promise<Layouts['down'] | null> {
    const laid = await this.#request(elkGraph(chart, direction, spacing));
    return laid === null ? null : layoutFrom(laid, chart);
  }

  #isBounded({ nodes, edges }: DrawableChart): boolean {
    const texts = [
      ...nodes.flatMap(({ id, entry }) => [id, ...entry]),
      ...edges.flatMap(({ id, event, guard, actions }) => [id, event, guard ?? '', ...actions]),
    ];
    const chars = texts.reduce((sum, text) => sum + text.length, 0);
    return nodes.length <= this.#limits.nodes && edges.length <= this.#limits.edges && chars <= this.#limits.chars;
  }

  #request(graph: ElkNode): Promise<ElkNode | null> {
    if (this.#closed) return Promise.resolve(null);
    const worker = (this.#worker ??= this.#newWorker());
    return new Promise((resolve) => {
      const end = (laid: ElkNode | null, isBroken: boolean): void => {
        clearTimeout(timer);
        worker.off('message', onResult).off('error', onFailure).off('exit', onFailure).unref();
        resolve(laid);
        if (isBroken) void this.#kill();
      };
      const onFailure = (): void => {
        end(null, true);
      };
      const onResult = ({ laid }: { readonly laid: ElkNode | null }): void => {
        end(laid, false);
      };
      const timer = setTimeout(onFailure, this.#limits.ms);
      worker.on('message', onResult).on('error', onFailure).on('exit', onFailure).ref();
      worker.postMessage(graph);
    });
  }

  async #kill(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #newWorker(): Worker {
    const elk = createRequire(import.meta.url).resolve('elkjs/lib/elk.bundled.js');
    const resourceLimits = { maxOldGenerationSizeMb: HEAP_MB };
    const worker = new Worker(THREAD, { eval: true, workerData: elk, env: {}, execArgv: [], resourceLimits });
    worker.on('error', () => undefined).unref();
    // The outstanding request gets this event too; the next chart gets a new thread.
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = null;
    });
    return worker;
  }
}

type Direction = 'DOWN' | 'RIGHT';
/** Spacing of a layout: a chart that is taller than a page must be dense to be readable. */
type Spacing = 'roomy' | 'dense';

type DrawableChart = Pick<Chart, 'nodes' | 'edges'>;

/** Up to this number of states the better placement is used, whose time grows fast. */
const CAREFUL_NODES_MAX = 60;
/** Subtracted from the height of labels that have their own layers: otherwise each one pushes the layers apart. */
const LABEL_OVERLAP = 13;

/** The ELK graph of a chart. An edge without a target is not drawn; edges with the same ends are merged. */
export function elkGraph({ nodes, edges }: DrawableChart, direction: Direction, spacing: Spacing = 'roomy'): ElkNode {
  const drawn = edges.filter(({ target }) => target !== null);
  const options = optionsFor(nodes.length, direction, spacing);
  const spine = spineOf(nodes, drawn);
  const bundles = bundleEdges(drawn);
  const rootIsDrawn = drawn.some(({ source, target }) => source === '' || target === '');
  const within = (parent: string): ElkNode[] =>
    nodes.filter((node) => node.parent === parent).map((node) => elkNode(node, within(node.id), options));
  const root = nodes.find(({ parent }) => parent === null);
  const inner = within('');
  return {
    id: CANVAS,
    layoutOptions: { ...options, 'elk.layered.mergeEdges': String(isCrowded(bundles)) },
    children: root !== undefined && rootIsDrawn ? [elkNode(root, inner, options)] : inner,
    edges: [...bundles].map(([id, bundle]) => elkEdge(id, bundle, direction, spine)),
  };
}
const CANVAS = '(canvas)';

/** Whether many lines lead to one state: then lines outside of compound states leave and arrive together. */
function isCrowded(bundles: ReadonlyMap<string, readonly ChartEdge[]>): boolean {
  const into = new Map<string | null, number>();
  for (const [edge] of bundles.values())
    if (edge !== undefined) into.set(edge.target, (into.get(edge.target) ?? 0) + 1);
  return Math.max(0, ...into.values()) > LINES_APART_MAX;
}
const LINES_APART_MAX = 6;

/** ELK does not accept an empty id. */
const elkId = (id: string): string => `:${id}`;

function optionsFor(nodes: number, direction: Direction, spacing: Spacing): LayoutOptions {
  return {
    'elk.algorithm': 'layered',
    'elk.direction': direction,
    'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
    'elk.edgeRouting': 'ORTHOGONAL',
    'elk.json.shapeCoords': 'ROOT',
    'elk.json.edgeCoords': 'ROOT',
    'elk.randomSeed': '1',
    'elk.layered.nodePlacement.strategy': nodes <= CAREFUL_NODES_MAX ? 'NETWORK_SIMPLEX' : 'BRANDES_KOEPF',
    'elk.layered.edgeLabels.centerLabelPlacementStrategy': 'TAIL_LAYER',
    'elk.layered.nodePlacement.favorStraightEdges': 'true',
    'elk.layered.thoroughness': nodes <= CAREFUL_NODES_MAX ? '40' : '7',
    'elk.padding': `[top=${CHART_METRICS.framePadding},left=${CHART_METRICS.framePadding},bottom=${CHART_METRICS.framePadding},right=${CHART_METRICS.framePadding}]`,
    ...SPACINGS[spacing],
  };
}

/** Compound states do not inherit these, so each of them repeats them. */
const SPACINGS: Readonly<Record<Spacing, LayoutOptions>> = {
  roomy: {
    'elk.spacing.nodeNode': '28',
    'elk.spacing.edgeNode': '16',
    'elk.spacing.edgeEdge': '12',
    'elk.spacing.edgeLabel': '4',
    'elk.spacing.labelNode': '6',
    'elk.layered.spacing.nodeNodeBetweenLayers': '13',
    'elk.layered.spacing.edgeNodeBetweenLayers': '8',
    'elk.layered.spacing.edgeEdgeBetweenLayers': '8',
  },
  // Every line that passes a layer adds to the distance between layers.
  dense: {
    'elk.spacing.nodeNode': '20',
    'elk.spacing.edgeNode': '10',
    'elk.spacing.edgeEdge': '8',
    'elk.spacing.edgeLabel': '4',
    'elk.spacing.labelNode': '6',
    'elk.layered.spacing.nodeNodeBetweenLayers': '10',
    'elk.layered.spacing.edgeNodeBetweenLayers': '5',
    'elk.layered.spacing.edgeEdgeBetweenLayers': '6',
  },
};

function elkNode(node: ChartNode, children: ElkNode[], options: LayoutOptions): ElkNode {
  const layoutOptions: LayoutOptions = {
    ...(node.type === 'final' ? { 'elk.layered.layering.layerConstraint': 'LAST' } : {}),
  };
  if (children.length === 0) {
    return { id: elkId(node.id), width: nodeWidth(node), height: CHART_METRICS.nodeHeight, layoutOptions };
  }
  const { titleHeight: top, framePadding: side } = CHART_METRICS;
  return {
    id: elkId(node.id),
    children,
    layoutOptions: {
      ...options,
      ...layoutOptions,
      'elk.padding': `[top=${top},left=${side},bottom=${side},right=${side}]`,
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${titleWidth(node)}, ${top + CHART_METRICS.nodeHeight})`,
    },
  };
}

/** Edges grouped by their ends, in order. */
function bundleEdges(edges: readonly ChartEdge[]): ReadonlyMap<string, readonly ChartEdge[]> {
  const bundles = new Map<string, ChartEdge[]>();
  for (const edge of edges) {
    const id = `${edge.source}->${edge.target ?? ''}`;
    bundles.set(id, [...(bundles.get(id) ?? []), edge]);
  }
  return bundles;
}

const labelledEdges = (bundle: readonly ChartEdge[]): readonly ChartEdge[] =>
  bundle.filter((edge) => labelText(edge) !== '');

function elkEdge(
  id: string,
  bundle: readonly ChartEdge[],
  direction: Direction,
  spine: ReadonlySet<string>,
): ElkExtendedEdge {
  const [{ source, target } = { source: '', target: '' }] = bundle;
  const lines = labelledEdges(bundle);
  const height = lines.length * CHART_METRICS.labelLine - (direction === 'DOWN' ? LABEL_OVERLAP : 0);
  const label = { text: LABEL, width: Math.max(...lines.map(labelWidth)), height: Math.max(height, 1) };
  return {
    id,
    sources: [elkId(source)],
    targets: [elkId(target ?? '')],
    labels: lines.length === 0 ? [] : [label],
    layoutOptions: spine.has(id)
      ? { 'elk.layered.priority.straightness': '20', 'elk.layered.priority.direction': '20' }
      : {},
  };
}

/** The edges of the path with the most states; the layout keeps them straight. */
function spineOf(nodes: readonly ChartNode[], edges: readonly ChartEdge[]): ReadonlySet<string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const topOf = (id: string): string => {
    let node = byId.get(id);
    while (node !== undefined && node.parent !== '' && node.parent !== null) node = byId.get(node.parent);
    return node?.id ?? '';
  };
  const next = new Map<string, Set<string>>();
  for (const { source, target } of edges) {
    const [from, to] = [topOf(source), topOf(target ?? '')];
    if (from !== to) next.set(from, (next.get(from) ?? new Set()).add(to));
  }
  const root = nodes.find(({ parent }) => parent === null);
  const longestPath = findLongestPath(root?.initial ?? '', next);
  const steps = new Set(longestPath.slice(1).map((to, i) => `${longestPath[i] ?? ''}->${to}`));
  return new Set(
    edges.flatMap(({ source, target }) =>
      steps.has(`${topOf(source)}->${topOf(target ?? '')}`) ? [`${source}->${target ?? ''}`] : [],
    ),
  );
}

/** Stops after some thousand steps, because there are too many paths, and returns the longest so far. */
function findLongestPath(from: string, next: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const seen = new Set<string>();
  let [best, steps]: [readonly string[], number] = [[], 0];
  const visit = (at: string): void => {
    seen.add(at);
    if (seen.size > best.length) best = [...seen];
    for (const to of next.get(at) ?? []) if (!seen.has(to) && (steps += 1) < STEPS_MAX) visit(to);
    seen.delete(at);
  };
  visit(from);
  return best;
}
const STEPS_MAX = 5_000;

/** ELK places only labels that have a text; which text does not matter. */
const LABEL = 'label';

/** Converts ELK's result for the graph of this chart. */
function layoutFrom(graph: ElkNode, { edges }: DrawableChart): Layout {
  const boxes: Box[] = [];
  const visit = (node: ElkNode): void => {
    for (const child of node.children ?? []) {
      const { x = 0, y = 0, width = 0, height = 0 } = child;
      boxes.push({ id: child.id.slice(1), x: round(x), y: round(y), width: round(width), height: round(height) });
      visit(child);
    }
  };
  visit(graph);
  const bundles = bundleEdges(edges.filter(({ target }) => target !== null));
  const lines = (graph.edges ?? []).map((edge) => lineFrom(edge, bundles.get(edge.id) ?? []));
  return { width: round(graph.width ?? 0), height: round(graph.height ?? 0), boxes, lines };
}

function lineFrom({ sections = [], labels = [] }: ElkExtendedEdge, bundle: readonly ChartEdge[]): ChartLine {
  const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [startPoint, ...bendPoints, endPoint]);
  const [label] = labels;
  const lines = labelledEdges(bundle);
  const [x, y] = [
    (label?.x ?? 0) + (label?.width ?? 0) / 2,
    (label?.y ?? 0) + (label?.height ?? 0) / 2 - ((lines.length - 1) * CHART_METRICS.labelLine) / 2,
  ];
  return {
    edges: bundle.map(({ id }) => id),
    points: points.map((point) => [round(point.x), round(point.y)] as const),
    labels: lines.map(({ id }, i) => ({ edge: id, x: round(x), y: round(y + i * CHART_METRICS.labelLine) })),
  };
}

const round = (pixels: number): number => Math.round(pixels * 10) / 10;
