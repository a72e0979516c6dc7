// The metrics of the service for Prometheus, in a registry of their own: an embedding service has another one.

import { Counter, Gauge, Registry } from 'prom-client';
import type { ClusterDirectory, ClusterStatus } from '../../ports/ledger/cluster.js';
import type { AdmissionCounts } from '../admission/scheduled-request.js';

const OUTCOME = /"(?:outcome|decision)":"([A-Z_]{1,32})"/;

/** A gauge whose values are read at each scrape. */
export interface GaugeSource {
  readonly name: string;
  readonly help: string;
  /** The name of its one label. Absent: it has one value. */
  readonly label?: string;
  /** The values, by the value of the label; without a label, one value under any key. */
  readonly read: () => Promise<ReadonlyMap<string, number>>;
}

export interface MetricSources {
  readonly size: () => Promise<number>;
  /** Absent: this process serves no streams. */
  readonly streams?: () => number;
  /** Absent: this process admits no requests. */
  readonly admission?: () => AdmissionCounts;
  /** Further gauges. */
  readonly gauges?: readonly GaugeSource[];
  /** The list of workers of a shared ledger. Absent: the ledger has one writer. */
  readonly cluster?: Pick<ClusterDirectory, 'status'>;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter;
  readonly #steps: Counter;

  constructor(sources: MetricSources) {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'turnpike_http_requests_total',
      help: 'Requests that were answered, by route and status',
      labelNames: ['route', 'method', 'status'],
      registers,
    });
    this.#steps = new Counter({
      name: 'turnpike_steps_total',
      help: 'Steps that were answered over HTTP, by outcome',
      labelNames: ['outcome'],
      registers,
    });
    if (sources.admission !== undefined) admissionMetrics(sources.admission, registers);
    const { streams, gauges = [] } = sources;
    if (streams !== undefined) {
      new Gauge({
        name: 'turnpike_stream_clients',
        help: 'Clients of event streams now',
        registers,
        collect() {
          this.set(streams());
        },
      });
    }
    for (const source of gauges) sourcedGauge(source, registers);
    new Gauge({
      name: 'turnpike_ledger_entries',
      help: 'Entries of the ledger',
      registers,
      async collect() {
        const size = sources.size();
        // The other metrics of a worker are needed most while the database is gone.
        this.set(await (sources.cluster === undefined ? size : size.catch(() => NaN)));
      },
    });
    if (sources.cluster !== undefined) clusterMetrics(sources.cluster, registers);
  }

  request(route: string, method: string, status: number): void {
    this.#requests.inc({ route, method, status });
  }

  /** Counts a step. Its outcome precedes all text that a tool can write, and quotes in strings are escaped. */
  step(response: string): void {
    const [, outcome = 'unknown'] = OUTCOME.exec(response) ?? [];
    this.#steps.inc({ outcome });
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get type(): string {
    return this.#registry.contentType;
  }
}

function sourcedGauge({ name, help, label, read }: GaugeSource, registers: Registry[]): Gauge {
  return new Gauge({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    registers,
    async collect() {
      for (const [value, number] of await read()) {
        if (label === undefined) this.set(number);
        else this.set({ [label]: value }, number);
      }
    },
  });
}

/** Metrics of the admission controller, which counts itself: they add no cost to a request. */
function admissionMetrics(counts: () => AdmissionCounts, registers: Registry[]): void {
  const kinds = (name: 'admitted' | 'queued', help: string): Counter =>
    new Counter({
      name: `turnpike_requests_${name}_total`,
      help,
      labelNames: ['kind'],
      registers,
      collect() {
        this.reset();
        for (const [kind, count] of Object.entries(counts()[name])) this.inc({ kind }, count);
      },
    });
  kinds('admitted', 'Requests that were admitted, by kind of work');
  kinds('queued', 'Requests that had to wait before they were admitted or refused, by kind of work');
  new Counter({
    name: 'turnpike_requests_refused_total',
    help: 'Requests that were not admitted, by the limit that was reached',
    labelNames: ['limit'],
    registers,
    collect() {
      this.reset();
      for (const [limit, count] of Object.entries(counts().refused)) this.inc({ limit }, count);
    },
  });
  new Gauge({
    name: 'turnpike_requests_running',
    help: 'Requests that run now, and requests that wait',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, waiting } = counts();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
    },
  });
}

/** Metrics of the whole cluster: every worker reports the same. Without the database their value is NaN. */
function clusterMetrics(cluster: Pick<ClusterDirectory, 'status'>, registers: Registry[]): void {
  // One query serves the gauges of a scrape, which are collected in the same turn.
  let reading: Promise<ClusterStatus | null> | null = null;
  const read = (): Promise<ClusterStatus | null> => {
    reading ??= cluster.status().then(
      (status) => status,
      () => null,
    );
    void reading.then(() => (reading = null));
    return reading;
  };
  const gauge = (name: string, help: string, valueOf: (status: ClusterStatus) => number): Gauge =>
    new Gauge({
      name: `turnpike_cluster_${name}`,
      help,
      registers,
      async collect() {
        const status = await read();
        this.set(status === null ? NaN : valueOf(status));
      },
    });
  gauge('performers', 'Workers that have a session with the database', ({ performers }) =>
    count(performers.map(({ over_at, connected }) => (over_at === null && connected ? 1 : 0))),
  );
  gauge('unfinished_effects', 'Effects without a recorded outcome', ({ performers }) =>
    count(performers.map(({ effects }) => effects)),
  );
  gauge('lost_effects', 'Effects of workers that are over, which another worker settles', ({ performers }) =>
    count(performers.map(({ over_at, effects }) => (over_at === null ? 0 : effects))),
  );
  gauge('pending_commits', 'Commits that are not in the log yet', ({ pending }) => pending.commits);
  gauge('merge_delay_seconds', 'Age of the oldest commit that is not in the log yet', ({ pending }) =>
    inSeconds(pending.oldest_ms),
  );
  gauge('timers_due', 'Timers that are due and have not fired', ({ timers }) => timers.due);
  gauge('timer_delay_seconds', 'How late the oldest of these timers is', ({ timers }) => inSeconds(timers.oldest_ms));
}

const MS_PER_SECOND = 1_000;
const inSeconds = (ms: number): number => ms / MS_PER_SECOND;
const count = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
