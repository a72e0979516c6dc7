// The metrics of the service for Prometheus, in a registry of their own: an embedding service has another one.

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
      help: 'Clients of event streams now',
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
