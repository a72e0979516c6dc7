// Stores data of the service on the request object.

import type { IncomingMessage } from 'node:http';

type Slots = Record<symbol, unknown>;

/** One value per request, for the lifetime of the request. A WeakMap would cost 5 % of a step. */
export class RequestSlot<T> {
  readonly #key = Symbol('slot');

  set(request: IncomingMessage, value: T): void {
    (request as unknown as Slots)[this.#key] = value;
  }

  get(request: IncomingMessage): T | undefined {
    return (request as unknown as Slots)[this.#key] as T | undefined;
  }
}
