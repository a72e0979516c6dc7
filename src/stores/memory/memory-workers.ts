import type { ClaimedLease, Lease, SharedAppend } from '../../engine/ports/ledger/shared-store.js';

/** One time that a store has joined. */
interface JoinedWorker {
  readonly store: object;
  /** Its process is gone, whatever its store believes. */
  isDead: boolean;
  /** It was declared over; it commits nothing more. */
  isOver: boolean;
}

interface HeldLease extends Lease {
  readonly tree_id: string;
  readonly worker_id: number;
  /** Whether the worker took it over from another one, and whether that one is known to be dead. */
  readonly claimed: { readonly isDead: boolean } | null;
}

/** The workers of a ledger in memory, their leases, and the locks of trees. */
export class MemoryWorkers {
  readonly #workers = new Map<number, JoinedWorker>();
  #leader: object | null = null;
  readonly #leases = new Map<string, HeldLease>();
  /** By tree: resolves when the last lock is released. */
  readonly #locks = new Map<string, Promise<unknown>>();

  /** Adds a worker for a store; its former one is over. @returns the number of the new one */
  join(store: object): number {
    this.leave(store);
    const worker_id = this.#workers.size + 1;
    this.#workers.set(worker_id, { store, isDead: false, isOver: false });
    return worker_id;
  }

  /** Whether this store has the lead; it takes it if no other store has it. */
  lead(store: object): boolean {
    this.#leader ??= store;
    return this.#leader === store;
  }

  /** Whether a worker that is alive has joined. */
  get hasAny(): boolean {
    return [...this.#workers.values()].some(({ isDead }) => !isDead);
  }

  /** The worker of the store is gone: others may settle its leases. */
  leave(store: object): void {
    if (this.#leader === store) this.#leader = null;
    for (const worker of this.#workers.values()) if (worker.store === store) worker.isDead = true;
  }

  /** Declares the worker of a store over although it is alive, as if its connection had been lost for long. */
  cutOff(store: object): void {
    for (const worker of this.#workers.values()) if (worker.store === store) worker.isOver = true;
  }

  isActive(worker_id: number): boolean {
    return this.#workers.get(worker_id)?.isOver === false;
  }

  /** Applies what an append changes in the leases of its worker. */
  apply(worker_id: number, { tree_id, taken, released, ended }: SharedAppend): void {
    for (const { run_id, kind } of taken) {
      this.#leases.set(`${kind} ${run_id}`, { run_id, kind, tree_id, worker_id, claimed: null });
    }
    for (const run_id of released) for (const kind of KINDS) this.#leases.delete(`${kind} ${run_id}`);
    if (!ended) return;
    for (const [key, lease] of this.#leases) if (lease.tree_id === tree_id) this.#leases.delete(key);
  }

  /** Takes over the leases of workers that are gone. */
  claim(worker_id: number, limit: number, except: readonly string[]): readonly ClaimedLease[] {
    const claimed: ClaimedLease[] = [];
    for (const [key, lease] of this.#leases) {
      if (except.includes(lease.tree_id)) continue;
      const holder = this.#workers.get(lease.worker_id);
      const isGone = holder === undefined || holder.isDead || holder.isOver;
      const isMine = lease.worker_id === worker_id && lease.claimed !== null;
      if ((!isGone && !isMine) || claimed.length === limit) continue;
      if (holder !== undefined && isGone) holder.isOver = true;
      const { run_id, kind, tree_id } = lease;
      const isDead = lease.claimed?.isDead ?? holder?.isDead === true;
      this.#leases.set(key, { run_id, kind, tree_id, worker_id, claimed: { isDead } });
      claimed.push({ run_id, kind, tree_id, isDead });
    }
    return claimed;
  }

  /** Whether the worker has all of these leases. */
  hasAll(worker_id: number | null, leases: readonly Lease[]): boolean {
    return leases.every(({ kind, run_id }) => this.#leases.get(`${kind} ${run_id}`)?.worker_id === worker_id);
  }

  /** No worker has these leases any more. */
  giveUp(leases: readonly Lease[]): void {
    for (const { kind, run_id } of leases) {
      const lease = this.#leases.get(`${kind} ${run_id}`);
      if (lease !== undefined) this.#leases.set(`${kind} ${run_id}`, { ...lease, worker_id: NO_WORKER });
    }
  }

  release(leases: readonly Lease[]): void {
    for (const { kind, run_id } of leases) this.#leases.delete(`${kind} ${run_id}`);
  }

  /** Runs `work` while no other work has any of these trees. */
  async locked<T>(tree_ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const [first, ...rest] = [...tree_ids].sort();
    if (first === undefined) return work();
    const before = this.#locks.get(first) ?? Promise.resolve();
    const done = before.then(() => this.locked(rest, work));
    this.#locks.set(
      first,
      done.catch(() => undefined),
    );
    return done;
  }
}

const NO_WORKER = 0;
const KINDS: readonly Lease['kind'][] = ['effect', 'caller'];
