// Decides which request runs, waits or is refused. A pure data structure: the caller passes the time and acts on the
// decisions.
//
// Invariants:
//   A1. At most `running` requests of a kind run, and at most `runningPerToken` of one token. Bodies that are being
//       read have at most `bodyBytes` together, and `bodyBytesPerToken` for one token.
//   A2. A connection has at most `requestsPerConnection` requests without a response, and a token at most
//       `connectionsPerToken` such connections.
//   A3. A waiting request eventually runs, is refused at its deadline, or is cancelled because its client left.
//   A4. Among the tokens whose requests may run, the one that was served least comes first.
//   A5. While a token with at most `modestSteps` outstanding steps works, all other work gets `bulkShare` of the time.

import { BulkTimeShare } from './bulk-time-share.js';
import { WORK_KINDS, type AdmissionLimits, type WorkKind } from './admission-limits.js';
import type { AdmissionCounts, RefusalCause, ScheduledRequest, WorkDemand } from './scheduled-request.js';
import { TokenShares } from './token-shares.js';

type PendingRequest = ScheduledRequest;

export class AdmissionSchedule {
  readonly #limits: AdmissionLimits;
  readonly #shares: TokenShares;
  readonly #bulkShare: BulkTimeShare;
  readonly #waiting: Readonly<Record<WorkKind, FairQueue<PendingRequest>>>;
  /** Reads that have finished a slice and wait for the next one. */
  readonly #slices = new FairQueue<PendingRequest>();
  readonly #queues: readonly FairQueue<PendingRequest>[];
  readonly #running = { live: 0, step: 0, read: 0, task: 0 };
  readonly #byConnection = new Map<object, number>();
  #bodyBytes = 0;
  #served = 0;
  readonly #admitted = { live: 0, step: 0, read: 0, task: 0 };
  readonly #queued = { live: 0, step: 0, read: 0, task: 0 };
  readonly #refused = { connection: 0, connections: 0, token: 0, service: 0 };

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    this.#shares = new TokenShares(limits);
    this.#bulkShare = new BulkTimeShare(limits);
    this.#waiting = { live: new FairQueue(), step: new FairQueue(), read: new FairQueue(), task: new FairQueue() };
    this.#queues = [...WORK_KINDS.map((kind) => this.#waiting[kind]), this.#slices];
  }

  /** The number of waiting requests and slices. */
  get waiting(): number {
    let waiting = 0;
    for (const { size } of this.#queues) waiting += size;
    return waiting;
  }

  get counts(): AdmissionCounts {
    const running = WORK_KINDS.reduce((sum, kind) => sum + this.#running[kind], 0);
    const waiting = WORK_KINDS.reduce((sum, kind) => sum + this.#waiting[kind].size, 0);
    return { admitted: this.#admitted, queued: this.#queued, refused: this.#refused, running, waiting };
  }

  /** Accepts a request. Its state says whether it runs at once, waits, or is refused. */
  enter(demand: WorkDemand, now: number): ScheduledRequest {
    const share = this.#shares.get(demand.token, now);
    const { token, connection, kind, bytes } = demand;
    const deadline = now + this.#limits.kinds[kind].queueMs;
    const request: PendingRequest = {
      token,
      connection,
      kind,
      bytes,
      share,
      deadline,
      state: 'queued',
      refusal: null,
      modest: false,
    };
    const cause = this.#causeOf(request);
    if (cause !== null) return this.#refuse(request, cause, now);
    this.#count(request);
    const queue = this.#waiting[kind];
    if (queue.sizeOf(token) === 0 && this.#canRun(request, now)) {
      this.#run(request, now);
    } else if (share.queued >= this.#limits.queuedPerToken) {
      this.leave(request, now);
      this.#refuse(request, 'token', now);
    } else if (this.waiting >= this.#limits.queued) {
      this.leave(request, now);
      this.#refuse(request, 'service', now);
    } else {
      queue.push(request);
      share.queued += 1;
      this.#queued[kind] += 1;
    }
    return request;
  }

  /** Schedules work of a token that is not a request: it uses no slot, and its slices are charged. */
  attach(token: string, now: number): ScheduledRequest {
    const share = this.#shares.get(token, now);
    const demand = { token, connection: share, kind: 'read', bytes: 0 } as const;
    return { ...demand, share, deadline: Infinity, state: 'attached', refusal: null, modest: false };
  }

  /** Removes a request whose work has ended, or whose client left while it waited. */
  leave(request: ScheduledRequest, now: number): void {
    const { share, kind, connection, state, bytes } = request;
    if (state !== 'running' && state !== 'queued') return;
    request.state = 'left';
    this.#slices.remove(request);
    if (this.#waiting[kind].remove(request)) share.queued -= 1;
    if (state === 'running') {
      share.running[kind] -= 1;
      this.#running[kind] -= 1;
      share.bodyBytes -= bytes;
      this.#bodyBytes -= bytes;
      if (request.modest) this.#bulkShare.end(share.token, now);
    }
    share.outstanding[kind] -= 1;
    const left = (share.connections.get(connection) ?? 1) - 1;
    if (left === 0) share.connections.delete(connection);
    else share.connections.set(connection, left);
    const outstanding = (this.#byConnection.get(connection) ?? 1) - 1;
    if (outstanding === 0) this.#byConnection.delete(connection);
    else this.#byConnection.set(connection, outstanding);
  }

  /** Charges work of a running request. @param ms its duration */
  charge(request: ScheduledRequest, ms: number, now: number): void {
    request.share.cost.spend(ms, now);
    request.share.served += ms / request.share.weight;
    this.#bulkShare.spend(request.token, { cost: ms, now });
  }

  /** Ends a slice of a read. @returns whether it may continue at once; else `next` returns it when it may */
  slice(request: ScheduledRequest, ms: number, now: number): boolean {
    this.charge(request, ms, now);
    if (!isWorking(request)) return true;
    if (this.#slices.size === 0 && this.#bulkShare.isOpen(request.token, now)) return true;
    this.#slices.push(request);
    return false;
  }

  /** The next request that may run or continue, or is refused at its deadline; null if no request waits. */
  next(now: number): ScheduledRequest | null {
    const expired = this.#refuseExpired(now);
    if (expired !== null) return expired;
    let first: PendingRequest | null = null;
    for (const queue of this.#queues) {
      for (const request of queue.heads()) {
        const isFirst = first === null || request.share.served < first.share.served;
        if (isFirst && this.#canContinue(request, now)) first = request;
      }
    }
    if (first === null) return null;
    if (this.#slices.remove(first)) return first;
    this.#waiting[first.kind].remove(first);
    first.share.queued -= 1;
    this.#run(first, now);
    return first;
  }

  /** The earliest time at which `next` may return another request; null if nothing waits. */
  nextWakeTime(now: number): number | null {
    let at: number | null = null;
    for (const queue of this.#queues) {
      for (const request of queue.heads()) {
        const when = this.#wakeTimeOf(request, now);
        if (at === null || when < at) at = when;
      }
    }
    return at;
  }

  #wakeTimeOf(request: PendingRequest, now: number): number {
    if (isWorking(request)) return this.#bulkShare.nextOpening(now);
    const { share, kind, token, deadline } = request;
    if (!this.#hasRoom(request, now)) return deadline;
    const wait = isCharged(kind) ? share.cost.waitFor(0, now) : 0;
    const open = this.#bulkShare.isOpen(token, now)
      ? now + wait
      : Math.max(now + wait, this.#bulkShare.nextOpening(now));
    return Math.min(deadline, Math.max(now + 1, open));
  }

  #refuseExpired(now: number): PendingRequest | null {
    for (const kind of WORK_KINDS) {
      const queue = this.#waiting[kind];
      if (queue.size === 0) continue;
      for (const request of queue.heads()) {
        if (request.deadline > now) continue;
        const cause = this.#isTokenFull(request, now) ? 'token' : 'service';
        this.leave(request, now);
        return this.#refuse(request, cause, now);
      }
    }
    return null;
  }

  #refuse(request: PendingRequest, cause: RefusalCause, now: number): PendingRequest {
    request.state = 'refused';
    request.refusal = { cause, retryMs: Math.max(1_000, request.share.cost.waitFor(0, now)) };
    this.#refused[cause] += 1;
    return request;
  }

  #causeOf({ connection, share }: PendingRequest): RefusalCause | null {
    const { requestsPerConnection, connectionsPerToken } = this.#limits;
    if ((this.#byConnection.get(connection) ?? 0) >= requestsPerConnection) return 'connection';
    const isNew = !share.connections.has(connection);
    return isNew && share.connections.size >= connectionsPerToken ? 'connections' : null;
  }

  #count({ connection, share, kind }: PendingRequest): void {
    share.outstanding[kind] += 1;
    share.connections.set(connection, (share.connections.get(connection) ?? 0) + 1);
    this.#byConnection.set(connection, (this.#byConnection.get(connection) ?? 0) + 1);
  }

  #canContinue(request: PendingRequest, now: number): boolean {
    return isWorking(request) ? this.#bulkShare.isOpen(request.token, now) : this.#canRun(request, now);
  }

  #canRun(request: PendingRequest, now: number): boolean {
    if (!this.#hasRoom(request, now)) return false;
    const { share, kind, token } = request;
    if (this.#shares.isModest(share, kind, now)) return true;
    return (!isCharged(kind) || share.cost.balance(now) >= 0) && this.#bulkShare.isOpen(token, now);
  }

  #hasRoom(request: PendingRequest, now: number): boolean {
    const { share, kind, bytes } = request;
    const { kinds, bodyBytes, bodyBytesPerToken } = this.#limits;
    if (this.#running[kind] >= kinds[kind].running) return false;
    if (share.running[kind] >= this.#runningMax(request, now)) return false;
    // A body over the limit is read while no other body is.
    if (this.#bodyBytes > 0 && this.#bodyBytes + bytes > bodyBytes) return false;
    return share.bodyBytes === 0 || share.bodyBytes + bytes <= bodyBytesPerToken;
  }

  /**
   * How many requests of this kind the token may run: fewer steps while others work, who would wait for all of them.
   */
  #runningMax({ kind, token }: PendingRequest, now: number): number {
    const { kinds, bulkSteps } = this.#limits;
    const { runningPerToken } = kinds[kind];
    return kind === 'step' && this.#bulkShare.isShared(token, now)
      ? Math.min(runningPerToken, bulkSteps)
      : runningPerToken;
  }

  #isTokenFull(request: PendingRequest, now: number): boolean {
    const { share, kind, bytes, token } = request;
    const { bodyBytesPerToken } = this.#limits;
    if (share.running[kind] >= this.#runningMax(request, now)) return true;
    if (share.bodyBytes > 0 && share.bodyBytes + bytes > bodyBytesPerToken) return true;
    return (isCharged(kind) && share.cost.balance(now) < 0) || !this.#bulkShare.isOpen(token, now);
  }

  #run(request: PendingRequest, now: number): void {
    const { share, kind, token, bytes } = request;
    const { cost } = this.#limits.kinds[kind];
    request.state = 'running';
    request.modest = this.#shares.isModest(share, kind, now);
    share.running[kind] += 1;
    this.#running[kind] += 1;
    share.bodyBytes += bytes;
    this.#bodyBytes += bytes;
    this.#admitted[kind] += 1;
    // An idle token accumulates no credit: it starts level with the others.
    this.#served = Math.max(this.#served, share.served);
    share.served = this.#served + cost / share.weight;
    if (request.modest) {
      share.modest.spend(1, now);
      this.#bulkShare.begin(token);
      return;
    }
    if (isCharged(kind)) share.cost.spend(cost, now);
    this.#bulkShare.spend(token, { cost, now });
  }
}

const isWorking = ({ state }: PendingRequest): boolean => state === 'running' || state === 'attached';

/** Reads and tasks are charged to their token; steps have limits of their own in the run. */
const isCharged = (kind: WorkKind): boolean => kind === 'read' || kind === 'task';

/** An item of a queue. */
interface QueueItem {
  readonly token: string;
}

/** Waiting items by token, each token's items in order of arrival. */
class FairQueue<Item extends QueueItem> {
  readonly #tokens = new Map<string, Set<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The number of waiting items of a token. */
  sizeOf(token: string): number {
    return this.#tokens.get(token)?.size ?? 0;
  }

  push(item: Item): void {
    let items = this.#tokens.get(item.token);
    if (items === undefined) this.#tokens.set(item.token, (items = new Set()));
    if (items.has(item)) return;
    items.add(item);
    this.#size += 1;
  }

  /** @returns whether the item was in the queue */
  remove(item: Item): boolean {
    const items = this.#tokens.get(item.token);
    if (items?.delete(item) !== true) return false;
    this.#size -= 1;
    if (items.size === 0) this.#tokens.delete(item.token);
    return true;
  }

  /** The first item of each token. */
  *heads(): Generator<Item> {
    for (const items of this.#tokens.values()) {
      for (const item of items) {
        yield item;
        break;
      }
    }
  }
}
