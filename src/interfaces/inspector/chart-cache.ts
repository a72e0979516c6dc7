import { LayoutWorker } from './layout-worker.js';
import { readShippedCharts } from '../../system/shipped-charts.js';
import { createLruMap } from '../../system/lru-map.js';
import { isWithheld } from '../../core/contract/artifact-ref.js';
import type { Chart } from '../../core/contract/inspection/inspection.js';
import type { MachineChart } from '../../kernel/replay/machine-chart.js';
import { readDefinitionCharts } from '../../kernel/replay/tree-course.js';
import type { LedgerView } from './ledger-view.js';

/** Limits of the caches: charts that were laid out here, and recorded definitions with known charts. */
const CHARTS_CACHED_MAX = 64;
const DEFINITIONS_MAX = 256;

/** The charts of recorded machines. Those of this version are shipped; others are laid out once. */
export class ChartCache {
  readonly #ledger: LedgerView;
  readonly #pause: () => Promise<void> | undefined;
  readonly #worker = new LayoutWorker();
  #shipped: ReadonlyMap<string, Chart> | null = null;
  readonly #laidOut = createLruMap<Promise<Chart | null>>(CHARTS_CACHED_MAX);
  readonly #recorded = new Map<string, MachineChart>();
  readonly #definitions = new Set<string>();
  /** Trees whose first entry is below this index were scanned. */
  #scan: Promise<unknown> = Promise.resolve();
  #through = 0;

  constructor(ledger: LedgerView, pause: () => Promise<void> | undefined) {
    this.#ledger = ledger;
    this.#pause = pause;
  }

  /** @returns null if this ledger has not recorded the definitions, or they have no layout */
  async chart(hash: string): Promise<Chart | null> {
    this.#shipped ??= readShippedCharts();
    const shipped = this.#shipped.get(hash);
    if (shipped !== undefined) return shipped;
    const known = this.#laidOut.get(hash);
    if (known !== undefined) return known;
    const recorded = await this.#find(hash);
    return recorded === null ? null : (this.#laidOut.get(hash) ?? this.#layOut(recorded));
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  #layOut(recorded: MachineChart): Promise<Chart | null> {
    const laid = this.#worker.layOut(recorded).then((layouts) => (layouts === null ? null : { ...recorded, layouts }));
    this.#laidOut.set(recorded.hash, laid);
    return laid;
  }

  async #find(hash: string): Promise<MachineChart | null> {
    if (!this.#recorded.has(hash)) {
      const scan = this.#scan.then(() => this.#scanDefinitions());
      this.#scan = scan.catch(() => undefined);
      await scan;
    }
    return this.#recorded.get(hash) ?? null;
  }

  /** Scans the openings of trees that were not scanned yet, so repeated requests for an unknown hash cost nothing. */
  async #scanDefinitions(): Promise<void> {
    for await (const { tree_id, log_index } of this.#ledger.trees()) {
      await this.#pause();
      if (log_index < this.#through) continue;
      await this.#readDefinition(tree_id);
      this.#through = log_index + 1;
    }
  }

  async #readDefinition(tree_id: string): Promise<void> {
    for await (const opening of this.#ledger.tree(tree_id)) {
      const hash = /"artifact_kind":"machines"[^{}]*"hash_sha256":"([0-9a-f]{64})"/.exec(opening.text)?.[1];
      if (hash === undefined || this.#definitions.has(hash) || this.#definitions.size >= DEFINITIONS_MAX) return;
      const artifacts = await this.#ledger.artifactsOf(opening);
      const machines = artifacts.find(({ kind }) => kind === 'machines');
      this.#definitions.add(hash);
      if (machines === undefined || isWithheld(machines)) return;
      for (const chart of readDefinitionCharts(machines.bytes)) this.#recorded.set(chart.hash, chart);
      return;
    }
  }
}
