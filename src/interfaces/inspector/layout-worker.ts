// Lays out charts in a separate thread: it takes from a tenth of a second to many seconds, and a chart comes from an
// untrusted ledger. So its size is limited, charts are laid out one at a time, and a layout that takes too long is
// killed.

import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { ElkNode } from 'elkjs';
import type { Chart } from '../../core/contract/inspection/inspection.js';
import { elkGraph, layoutFrom, type Direction, type DrawableChart, type Spacing } from './elk-layout.js';

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
