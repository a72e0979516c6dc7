// What is counted, as Prometheus reads it. A registry of its own: whoever embeds this has one, too.

import { Counter, Gauge, Registry } from 'prom-client';
import type { AdmissionCounts } from '../admission/scheduled-request.js';

const OUTCOME = /"(?:outcome|decision)":"([A-Z_]{1,32})"/;

export interface MetricSources {
  readonly size: () => Promise<number>;
  readonly streams: () => number;
  readonly admission: () => AdmissionCounts;
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
    admissionMetrics(sources.admission, registers);
    new Gauge({
      name: 'turnpike_stream_clients',
      help: 'Who listens to the ledger now',
      registers,
      collect() {
        this.set(sources.streams());
      },
    });
    new Gauge({
      name: 'turnpike_ledger_entries',
      help: 'Entries of the ledger',
      registers,
      async collect() {
        this.set(await sources.size());
      },
    });
  }

  request(route: string, method: string, status: number): void {
    this.#requests.inc({ route, method, status });
  }

  /** The outcome comes before everything that a tool can have written, and quotes in strings are escaped. */
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

/** What the admission controller counts itself: a request costs nothing more for being shown here. */
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
    help: 'Requests that are under way now, and those that wait',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, waiting } = counts();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
    },
  });
}
