// The way in for every request, over HTTP as over MCP: the front door says who asks, the admission controller when.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Principal } from '../ports/token-book.js';
import type {
  PendingAdmission,
  AdmissionController,
  AdmissionDecision,
  AdmittedWork,
} from './admission/admission-controller.js';
import type { WorkKind } from './admission/admission-limits.js';
import type { RequestGuard } from './request-guard.js';
import { createRefusal, type Refusal } from './problems.js';

/** A request that came in, or why it did not. Null: its client left before that was decided. */
export type AdmissionOutcome = { readonly principal: Principal | null; readonly work: AdmittedWork } | Refusal | null;

export interface RequestAdmissionOptions {
  readonly guard: RequestGuard;
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

export class RequestAdmission {
  readonly #options: RequestAdmissionOptions;

  constructor(options: RequestAdmissionOptions) {
    this.#options = options;
  }

  /** Decides at once where nothing has to be waited for. */
  admit(request: IncomingMessage, response: ServerResponse): AdmissionOutcome | Promise<AdmissionOutcome> {
    const { guard, admission, kindOf } = this.#options;
    const guarded = guard(request);
    if (guarded.refusal !== null) {
      return guarded.refusal.status === 401 ? this.#recordFailure(request, guarded.refusal) : guarded.refusal;
    }
    const { principal } = guarded;
    const { kind, bytesMax } = kindOf(request);
    const { socket } = request;
    const bytes = bodyBytesOf(request, bytesMax);
    const pending = admission.admit({ token: principal?.id ?? ANONYMOUS, connection: socket, kind, bytes });
    const decision = pending.currentDecision;
    if (decision === null) return this.#admitQueued(request, response, { waiting: pending, principal });
    const outcome = toAdmissionOutcome(decision, principal);
    if ('work' in outcome) endWithResponse(outcome.work, socket, response);
    return outcome;
  }

  async #admitQueued(
    { socket }: IncomingMessage,
    response: ServerResponse,
    { waiting: pending, principal }: { readonly waiting: PendingAdmission; readonly principal: Principal | null },
  ): Promise<AdmissionOutcome> {
    let work: AdmittedWork | null = null;
    runOnceClosed(socket, response, () => {
      if (work === null) pending.cancel();
      else endWork(work, response);
    });
    const decision = await pending.decision();
    if (decision === null) return null;
    const outcome = toAdmissionOutcome(decision, principal);
    if ('work' in outcome) work = outcome.work;
    return outcome;
  }

  /** Valid tokens are never limited by address; failed authentications are. */
  #recordFailure({ socket }: IncomingMessage, refused: Refusal): Refusal {
    const wait = this.#options.admission.recordFailure(socket.remoteAddress ?? '');
    return wait === 0 ? refused : createRefusal('TOO_MANY_FAILURES', retryAfter(wait));
  }
}

/** Ends work with its response; what has not been answered by then is aborted. */
function endWithResponse(work: AdmittedWork, socket: Socket, response: ServerResponse): void {
  runOnceClosed(socket, response, () => endWork(work, response));
}

function endWork(work: AdmittedWork, response: ServerResponse): void {
  if (!response.writableFinished) work.abort();
  work.end();
}

const toAdmissionOutcome = (
  decision: AdmissionDecision,
  principal: Principal | null,
): Exclude<AdmissionOutcome, null> =>
  'work' in decision
    ? { principal, work: decision.work }
    : createRefusal(REFUSALS[decision.refused.cause], retryAfter(decision.refused.retryMs));

const retryAfter = (ms: number): Readonly<Record<string, string>> => ({
  'Retry-After': String(Math.max(1, Math.ceil(ms / 1_000))),
});

/** What a body may have: its length where the client says it, and else as much as is read. */
function bodyBytesOf({ headers }: IncomingMessage, bytesMax: number): number {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (length === undefined) return encoding === undefined ? 0 : bytesMax;
  return Math.min(Number(length) || 0, bytesMax);
}

/** What is done when each connection is closed, for its responses that have not ended by then. */
const OPEN_RESPONSES = new WeakMap<Socket, Set<() => void>>();

/** Of requests that were pipelined, Node tells only the first response that the connection was closed. */
function runOnceClosed(socket: Socket, response: ServerResponse, onClose: () => void): void {
  let open = OPEN_RESPONSES.get(socket);
  if (open === undefined) {
    const all = new Set<() => void>();
    OPEN_RESPONSES.set(socket, (open = all));
    socket.once('close', () => {
      for (const each of [...all]) each();
    });
  }
  const once = (): void => {
    if (open.delete(once)) onClose();
  };
  open.add(once);
  response.once('close', once);
  if (socket.destroyed) once();
}
