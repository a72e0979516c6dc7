import { LayoutWorker } from '../../adapters/layout-worker.js';
import { shippedCharts } from '../../adapters/shipped-charts.js';
import { isWithheld } from '../../contract/artifact-ref.js';
import type { Chart } from '../../contract/inspection.js';
import type { MachineChart } from '../../replay/chart-of.js';
import { definitionCharts } from '../../replay/course.js';
import type { LookedAt } from './looked-at.js';

/** Charts that were laid out here, and recorded definitions whose charts are known; there are few of either. */
const CHARTS_KEPT = 64;
const DEFINITIONS_MAX = 256;

/** The charts of recorded machines: those of this version are at hand, others are laid out once. */
export class ChartShelf {
  readonly #looked: LookedAt;
  readonly #pause: () => Promise<void> | undefined;
  readonly #worker = new LayoutWorker();
  #shipped: ReadonlyMap<string, Chart> | null = null;
  readonly #laid = new Map<string, Promise<Chart | null>>();
  readonly #recorded = new Map<string, MachineChart>();
  readonly #definitions = new Set<string>();
  /** The trees whose first entry is below have been looked at. */
  #looking: Promise<unknown> = Promise.resolve();
  #through = 0;

  constructor(looked: LookedAt, pause: () => Promise<void> | undefined) {
    this.#looked = looked;
    this.#pause = pause;
  }

  /** @returns null for what this ledger has not recorded, or nobody can lay out */
  async chart(hash: string): Promise<Chart | null> {
    this.#shipped ??= shippedCharts();
    const shipped = this.#shipped.get(hash);
    if (shipped !== undefined) return shipped;
    const known = this.#laid.get(hash);
    if (known !== undefined) return known;
    const recorded = await this.#find(hash);
    return recorded === null ? null : (this.#laid.get(hash) ?? this.#layOut(recorded));
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  #layOut(recorded: MachineChart): Promise<Chart | null> {
    const laid = this.#worker.layouts(recorded).then((layouts) => (layouts === null ? null : { ...recorded, layouts }));
    this.#laid.set(recorded.hash, laid);
    for (const oldest of this.#laid.keys()) {
      if (this.#laid.size <= CHARTS_KEPT) break;
      this.#laid.delete(oldest);
    }
    return laid;
  }

  async #find(hash: string): Promise<MachineChart | null> {
    if (!this.#recorded.has(hash)) {
      const looking = this.#looking.then(() => this.#look());
      this.#looking = looking.catch(() => undefined);
      await looking;
    }
    return this.#recorded.get(hash) ?? null;
  }

  /** Reads the openings of trees that nobody has looked at: what nobody has recorded, costs nothing twice. */
  async #look(): Promise<void> {
    for await (const { tree_id, log_index } of this.#looked.trees()) {
      await this.#pause();
      if (log_index < this.#through) continue;
      await this.#take(tree_id);
      this.#through = log_index + 1;
    }
  }

  async #take(tree_id: string): Promise<void> {
    for await (const opening of this.#looked.tree(tree_id)) {
      const hash = /"artifact_kind":"machines"[^{}]*"hash_sha256":"([0-9a-f]{64})"/.exec(opening.text)?.[1];
      if (hash === undefined || this.#definitions.has(hash) || this.#definitions.size >= DEFINITIONS_MAX) return;
      const artifacts = await this.#looked.artifactsOf(opening);
      const machines = artifacts.find(({ kind }) => kind === 'machines');
      this.#definitions.add(hash);
      if (machines === undefined || isWithheld(machines)) return;
      for (const chart of definitionCharts(machines.bytes)) this.#recorded.set(chart.hash, chart);
      return;
    }
  }
}
