// What is counted, as Prometheus reads it. A registry of its own: whoever embeds this has one, too.

import { Counter, Gauge, Registry } from 'prom-client';

const OUTCOME = /"(?:outcome|decision)":"([A-Z_]{1,32})"/;

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter;
  readonly #steps: Counter;

  constructor(now: { readonly size: () => Promise<number>; readonly streams: () => number }) {
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
    new Gauge({
      name: 'turnpike_stream_clients',
      help: 'Who listens to the ledger now',
      registers,
      collect() {
        this.set(now.streams());
      },
    });
    new Gauge({
      name: 'turnpike_ledger_entries',
      help: 'Entries of the ledger',
      registers,
      async collect() {
        this.set(await now.size());
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
