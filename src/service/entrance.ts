// The way in for every request, over HTTP as over MCP: the front door says who asks, the admission controller when.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Principal } from '../ports/token-book.js';
import type { Admission, AdmissionController, Admitted, AdmittedWork } from './admission/controller.js';
import type { WorkKind } from './admission/limits.js';
import type { FrontDoor } from './front-door.js';
import { refusal, type Refusal } from './problems.js';

/** A request that came in, or why it did not. Null: its client left before that was decided. */
export type Entered = { readonly principal: Principal | null; readonly work: AdmittedWork } | Refusal | null;

export interface EntranceParts {
  readonly door: FrontDoor;
  readonly admission: AdmissionController;
  /** What a request makes the service do, and how many bytes its body may have. */
  readonly kindOf: (request: IncomingMessage) => { readonly kind: WorkKind; readonly bytesMax: number };
}

/** Of clients without a token: they share what one token may use. */
const ANONYMOUS = '';
const REFUSALS = {
  connection: 'TOO_MANY_REQUESTS',
  connections: 'TOO_MANY_REQUESTS',
  token: 'TOO_MANY_REQUESTS',
  service: 'OVERLOADED',
} as const;

export class Entrance {
  readonly #parts: EntranceParts;

  constructor(parts: EntranceParts) {
    this.#parts = parts;
  }

  /** Decides at once where nothing has to be waited for. */
  enter(request: IncomingMessage, response: ServerResponse): Entered | Promise<Entered> {
    const { door, admission, kindOf } = this.#parts;
    const came = door(request);
    if (came.refusal !== null) {
      return came.refusal.status === 401 ? this.#failed(request, came.refusal) : came.refusal;
    }
    const { principal } = came;
    const { kind, bytesMax } = kindOf(request);
    const { socket } = request;
    const bytes = bytesOf(request, bytesMax);
    const waiting = admission.admit({ token: principal?.id ?? ANONYMOUS, connection: socket, kind, bytes });
    const decided = waiting.decided;
    if (decided === null) return this.#later(request, response, { waiting, principal });
    const entered = enteredOf(decided, principal);
    if ('work' in entered) endWithResponse(entered.work, socket, response);
    return entered;
  }

  async #later(
    { socket }: IncomingMessage,
    response: ServerResponse,
    { waiting, principal }: { readonly waiting: Admission; readonly principal: Principal | null },
  ): Promise<Entered> {
    let work: AdmittedWork | null = null;
    onceClosed(socket, response, () => {
      if (work === null) waiting.cancel();
      else endWork(work, response);
    });
    const decided = await waiting.decision();
    if (decided === null) return null;
    const entered = enteredOf(decided, principal);
    if ('work' in entered) work = entered.work;
    return entered;
  }

  /** Valid tokens are never limited by address; failed authentications are. */
  #failed({ socket }: IncomingMessage, why: Refusal): Refusal {
    const wait = this.#parts.admission.failed(socket.remoteAddress ?? '');
    return wait === 0 ? why : refusal('TOO_MANY_FAILURES', retryAfter(wait));
  }
}

/** Ends work with its response; what has not been answered by then is aborted. */
function endWithResponse(work: AdmittedWork, socket: Socket, response: ServerResponse): void {
  onceClosed(socket, response, () => endWork(work, response));
}

function endWork(work: AdmittedWork, response: ServerResponse): void {
  if (!response.writableFinished) work.abort();
  work.end();
}

const enteredOf = (decided: Admitted, principal: Principal | null): Exclude<Entered, null> =>
  'work' in decided
    ? { principal, work: decided.work }
    : refusal(REFUSALS[decided.refused.cause], retryAfter(decided.refused.retryMs));

const retryAfter = (ms: number): Readonly<Record<string, string>> => ({
  'Retry-After': String(Math.max(1, Math.ceil(ms / 1_000))),
});

/** What a body may have: its length where the client says it, and else as much as is read. */
function bytesOf({ headers }: IncomingMessage, bytesMax: number): number {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (length === undefined) return encoding === undefined ? 0 : bytesMax;
  return Math.min(Number(length) || 0, bytesMax);
}

/** What is done when each connection is closed, for its responses that have not ended by then. */
const OPEN = new WeakMap<Socket, Set<() => void>>();

/** Of requests that were pipelined, Node tells only the first response that the connection was closed. */
function onceClosed(socket: Socket, response: ServerResponse, closed: () => void): void {
  let open = OPEN.get(socket);
  if (open === undefined) {
    const all = new Set<() => void>();
    OPEN.set(socket, (open = all));
    socket.once('close', () => {
      for (const each of [...all]) each();
    });
  }
  const once = (): void => {
    if (open.delete(once)) closed();
  };
  open.add(once);
  response.once('close', once);
  if (socket.destroyed) once();
}
