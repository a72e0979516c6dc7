// Admits every request, over HTTP and MCP: the request guard identifies the caller, and the admission controller
// decides when the request runs.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Socket, BlockList, isIP } from 'node:net';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AdmissionController, AdmittedWork } from '../admission/admission-controller.js';
import type { WorkKind } from '../admission/admission-limits.js';
import type { RequestGuard } from './request-guard.js';
import { createRefusal, type Refusal } from './problems.js';
import { usageError } from '../../core/errors.js';

/** An admitted request, or its refusal. Null if the client left before the decision. */
export type AdmissionOutcome = { readonly principal: Principal | null; readonly work: AdmittedWork } | Refusal | null;

export interface RequestAdmissionOptions {
  readonly guard: RequestGuard;
  readonly admission: AdmissionController;
  /** The address that failed authentications count for. Default: that of the connection. */
  readonly addressOf?: FindClientAddress | undefined;
}

/** The kind of work of a request, and the limit of its body in bytes. */
export interface RequestDemand {
  readonly kind: WorkKind;
  readonly bytesMax: number;
}

/** The token id of all clients without a token: they share the limits of one token. */
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

  /** The work ends when its response closes. It is aborted if the response is incomplete. */
  async admit(
    request: IncomingMessage,
    response: ServerResponse,
    { kind, bytesMax }: RequestDemand,
  ): Promise<AdmissionOutcome> {
    const { guard, admission } = this.#options;
    const guarded = await guard(request);
    if (guarded.refusal !== null) {
      return guarded.refusal.status === 401 ? this.#recordFailure(request, guarded.refusal) : guarded.refusal;
    }
    const { principal } = guarded;
    const { socket } = request;
    const bytes = bodyBytesOf(request, bytesMax);
    const pending = admission.admit({ token: principal?.id ?? ANONYMOUS, connection: socket, kind, bytes });
    let decision = pending.currentDecision;
    let work = decision !== null && 'work' in decision ? decision.work : null;
    // At once if the client left during the guard: the work is aborted before it begins.
    runOnceClosed(socket, response, () => {
      if (work === null) pending.cancel();
      else endWork(work, response);
    });
    decision ??= await pending.decision();
    if (decision === null) return null;
    if ('refused' in decision) {
      const { cause, retryMs } = decision.refused;
      return createRefusal(REFUSALS[cause], retryAfter(retryMs));
    }
    ({ work } = decision);
    return { principal, work };
  }

  /** Valid tokens are never limited by address; failed authentications are. */
  #recordFailure(request: IncomingMessage, refused: Refusal): Refusal {
    const { admission, addressOf } = this.#options;
    const address = addressOf?.(request) ?? request.socket.remoteAddress ?? '';
    const wait = admission.recordFailure(address);
    return wait === 0 ? refused : createRefusal('TOO_MANY_FAILURES', retryAfter(wait));
  }
}

function endWork(work: AdmittedWork, response: ServerResponse): void {
  if (!response.writableFinished) work.abort();
  work.end();
}

const retryAfter = (ms: number): Readonly<Record<string, string>> => ({
  'Retry-After': String(Math.max(1, Math.ceil(ms / 1_000))),
});

/** The size limit of a body in bytes: its declared length, or `bytesMax` if the client declares none. */
function bodyBytesOf({ headers }: IncomingMessage, bytesMax: number): number {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (length === undefined) return encoding === undefined ? 0 : bytesMax;
  return Math.min(Number(length) || 0, bytesMax);
}

/** Callbacks by connection for its unfinished responses, called when the connection closes. */
const OPEN_RESPONSES = new WeakMap<Socket, Set<() => void>>();

/** Of pipelined requests, Node notifies only the first response that the connection was closed. */
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

/** A header is read from its end, and never further than this many addresses. */
const HOPS_MAX = 16;

/** Returns the address of the client of a request. Never throws. */
type FindClientAddress = (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string;

/**
 * The address of the nearest client that is not a trusted proxy: what proxies wrote is true, what a client wrote may
 * not be.
 * @param trustedProxies addresses, or networks such as `10.0.0.0/8`. Empty: the header is never read
 * @throws UsageError for an invalid address
 */
export function clientAddressFinder(trustedProxies: readonly string[]): FindClientAddress {
  const trusted = new BlockList();
  for (const text of trustedProxies) addNetwork(trusted, text);
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return ({ headers, socket }) => {
    let address = plainAddress(socket.remoteAddress ?? '');
    if (trustedProxies.length === 0) return address;
    const header = headers['x-forwarded-for'];
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').slice(-HOPS_MAX);
    while (isTrusted(address)) {
      const hop = plainAddress(hops.pop()?.trim() ?? '');
      if (isIP(hop) === 0) return address;
      address = hop;
    }
    return address;
  };
}

function addNetwork(list: BlockList, text: string): void {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = isIP(address);
  const bitsMax = version === 6 ? 128 : 32;
  const bits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (version === 0 || rest.length > 0 || !(bits <= bitsMax)) {
    throw usageError(`trusted proxy ${JSON.stringify(text)}: an IP address, or a network such as 10.0.0.0/8`);
  }
  list.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4');
}

/** An IPv4 address of a socket for both protocols is written as IPv6. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/iu, '');
