// What the service knows of a request, on the request itself.

import type { IncomingMessage } from 'node:http';

type Slots = Record<symbol, unknown>;

/** One value for each request, as long as the request lives. A WeakMap with an entry for each costs 5 % of a step. */
export class RequestSlot<T> {
  readonly #key = Symbol('slot');

  set(request: IncomingMessage, value: T): void {
    (request as unknown as Slots)[this.#key] = value;
  }

  get(request: IncomingMessage): T | undefined {
    return (request as unknown as Slots)[this.#key] as T | undefined;
  }
}
