// The metrics of the HTTP service. The registry also has those of the engine if both share one telemetry.

import type { Log } from '../../engine/ports/log.js';
import type { ClusterDirectory, ClusterStatus } from '../../engine/ports/ledger/cluster.js';
import type { Measure, Meter, ServiceTelemetry } from '../../engine/ports/telemetry.js';
import type { IdentityCounts } from '../service/identity-service.js';
import type { AdmissionCounts } from '../admission/admission-schedule.js';
import type { Turnpike } from '../../host/turnpike.js';

/** The content type of the text format of Prometheus. */
const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
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
  /** Callers of issuers. Absent: only tokens of the token book are accepted. */
  readonly identity?: () => IdentityCounts;
}

/** Where metrics are registered and collected. */
export type MetricRegistry = Pick<ServiceTelemetry, 'meter' | 'collect'>;

/** Creates a registry that nothing else uses. */
export type CreateMetricRegistry = (version: string, log: Pick<Log, 'warn'>) => MetricRegistry;

/** Without the feature of telemetry: it has no metrics. */
export const NO_METRICS: MetricRegistry = {
  meter: { counter: () => () => undefined, histogram: () => () => undefined, observe: () => undefined },
  collect: () => Promise.resolve({ text: '' }),
};

export class Metrics {
  readonly #registry: MetricRegistry;
  readonly #requests: Measure;
  readonly #steps: Measure;

  constructor(sources: MetricSources, registry: MetricRegistry) {
    const { meter } = registry;
    this.#registry = registry;
    this.#requests = meter.counter('turnpike_http_requests_total', {
      description: 'Requests that were answered, by route and status',
    });
    this.#steps = meter.counter('turnpike_steps_total', {
      description: 'Steps that were answered over HTTP, by outcome',
    });
    if (sources.admission !== undefined) admissionMetrics(sources.admission, meter);
    const { streams, gauges = [] } = sources;
    if (streams !== undefined) {
      const description = 'Clients of event streams now';
      meter.observe('gauge', 'turnpike_stream_clients', { description }, () => [{ value: streams() }]);
    }
    for (const source of gauges) sourcedGauge(source, meter);
    meter.observe('gauge', 'turnpike_ledger_entries', { description: 'Entries of the ledger' }, async () => {
      const size = sources.size();
      // The other metrics of a worker are needed most while the database is gone.
      return [{ value: await (sources.cluster === undefined ? size : size.catch(() => NaN)) }];
    });
    if (sources.cluster !== undefined) clusterMetrics(sources.cluster, meter);
    if (sources.identity !== undefined) identityMetrics(sources.identity, meter);
  }

  request(route: string, method: string, status: number): void {
    this.#requests(1, { route, method, status });
  }

  /** Counts a step. Its outcome precedes all text that a tool can write, and quotes in strings are escaped. */
  step(response: string): void {
    const [, outcome = 'unknown'] = OUTCOME.exec(response) ?? [];
    this.#steps(1, { outcome });
  }

  /** All metrics now, in the text format of Prometheus. */
  async text(): Promise<string> {
    return (await this.#registry.collect()).text;
  }

  get type(): string {
    return PROMETHEUS_TYPE;
  }
}

function sourcedGauge({ name, help, label, read }: GaugeSource, meter: Meter): void {
  meter.observe('gauge', name, { description: help }, async () =>
    [...(await read())].map(([key, value]) => ({
      value,
      ...(label === undefined ? {} : { attributes: { [label]: key } }),
    })),
  );
}

/** Metrics of the admission controller, which counts itself: they add no cost to a request. */
function admissionMetrics(counts: () => AdmissionCounts, meter: Meter): void {
  const counter = (name: 'admitted' | 'queued' | 'refused', label: string, description: string): void =>
    meter.observe('counter', `turnpike_requests_${name}_total`, { description }, () =>
      Object.entries(counts()[name]).map(([key, value]) => ({ value, attributes: { [label]: key } })),
    );
  counter('admitted', 'kind', 'Requests that were admitted, by kind of work');
  counter('queued', 'kind', 'Requests that had to wait before they were admitted or refused, by kind of work');
  counter('refused', 'limit', 'Requests that were not admitted, by the limit that was reached');
  const running = { description: 'Requests that run now, and requests that wait' };
  meter.observe('gauge', 'turnpike_requests_running', running, () => {
    const { running: now, waiting } = counts();
    return [
      { value: now, attributes: { state: 'running' } },
      { value: waiting, attributes: { state: 'waiting' } },
    ];
  });
}

function identityMetrics(counts: () => IdentityCounts, meter: Meter): void {
  const refused = { description: 'Tokens of issuers and sessions of the page that were refused, by the reason' };
  meter.observe('counter', 'turnpike_identity_refused_total', refused, () =>
    Object.entries(counts().refused).map(([problem, value]) => ({ value, attributes: { problem } })),
  );
  // No token is needed to read this. The URL of an issuer may name a tenant, so only its number is shown.
  const keys = {
    description: 'Whether the keys of the n-th issuer are fresh (2), old but still used (1), or missing (0)',
  };
  meter.observe('gauge', 'turnpike_identity_keys', keys, () =>
    Object.values(counts().keys).map((state, at) => ({
      value: KEYS_VALUES[state],
      attributes: { issuer: String(at + 1) },
    })),
  );
  const sessions = { description: 'Sessions of people who have signed in on the page' };
  meter.observe('gauge', 'turnpike_identity_sessions', sessions, () => [{ value: counts().sessions }]);
}
const KEYS_VALUES = { fresh: 2, stale: 1, absent: 0 } as const;

/** Metrics of the whole cluster: every worker reports the same. Without the database their value is NaN. */
function clusterMetrics(cluster: Pick<ClusterDirectory, 'status'>, meter: Meter): void {
  // One query serves the gauges of a collection, which are read in the same turn.
  let reading: Promise<ClusterStatus | null> | null = null;
  const read = (): Promise<ClusterStatus | null> => {
    reading ??= cluster.status().then(
      (status) => status,
      () => null,
    );
    void reading.then(() => (reading = null));
    return reading;
  };
  const gauge = (name: string, description: string, valueOf: (status: ClusterStatus) => number): void =>
    meter.observe('gauge', `turnpike_cluster_${name}`, { description }, async () => {
      const status = await read();
      return [{ value: status === null ? NaN : valueOf(status) }];
    });
  gauge('performers', 'Workers that have a session with the database', ({ workers }) =>
    count(workers.map(({ over_at, connected }) => (over_at === null && connected ? 1 : 0))),
  );
  gauge('unfinished_effects', 'Effects without a recorded outcome', ({ workers }) =>
    count(workers.map(({ effects }) => effects)),
  );
  gauge('lost_effects', 'Effects of workers that are over, which another worker settles', ({ workers }) =>
    count(workers.map(({ over_at, effects }) => (over_at === null ? 0 : effects))),
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

export function readinessGauges({ readiness, vitals }: Pick<Turnpike, 'readiness' | 'vitals'>): readonly GaugeSource[] {
  const one = (name: string, help: string, valueOf: () => number | Promise<number>): GaugeSource => ({
    name: `turnpike_${name}`,
    help,
    read: async () => new Map([['', await valueOf()]]),
  });
  return [
    one('ready', 'Whether every readiness check holds', async () => flag((await readiness.report()).isReady)),
    {
      name: 'turnpike_ready_check',
      help: 'Whether one readiness check holds',
      label: 'check',
      read: async () => {
        const { checks } = await readiness.report();
        return new Map(checks.map(({ name, reason }) => [name, flag(reason === null)]));
      },
    },
    one('ledger_failed', 'Whether a write to the ledger has failed, until a restart has recovered from it', () =>
      flag(vitals.condition().state !== 'running'),
    ),
    one(
      'disk_free_bytes',
      'Free space on the disk of the ledger; NaN if the disk is not known',
      () => vitals.freeBytes() ?? Number.NaN,
    ),
    one(
      'clock_offset_seconds',
      'How far the clock of the machine was set forward since the start; negative: back',
      () => Math.round(inSeconds(vitals.clockOffset())),
    ),
  ];
}

const flag = (holds: boolean): number => (holds ? 1 : 0);

/** The metrics of a process that has no HTTP service. */
export const workerMetrics = (
  turnpike: Turnpike,
  cluster: Pick<ClusterDirectory, 'status'>,
  registry: MetricRegistry | null,
): Metrics =>
  new Metrics(
    { size: () => turnpike.ledger.size(), gauges: readinessGauges(turnpike), cluster },
    registry ?? NO_METRICS,
  );
