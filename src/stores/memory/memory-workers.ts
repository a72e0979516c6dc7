import type { ClaimedDuty, Duty, SharedAppend } from '../../engine/ports/ledger/shared-store.js';

interface Performer {
  readonly worker: object;
  /** Its worker is gone, whatever the worker believes. */
  isDead: boolean;
  /** It was declared over; it commits nothing more. */
  isOver: boolean;
}

interface HeldDuty extends Duty {
  readonly tree_id: string;
  readonly performer: number;
  /** Whether the performer took it over from another one, and whether that one is known to be dead. */
  readonly claimed: { readonly isDead: boolean } | null;
}

/** The workers of a ledger in memory, their duties, and the locks of trees. */
export class MemoryWorkers {
  readonly #performers = new Map<number, Performer>();
  #leader: object | null = null;
  readonly #duties = new Map<string, HeldDuty>();
  /** By tree: resolves when the last lock is released. */
  readonly #locks = new Map<string, Promise<unknown>>();

  /** Adds a performer for a worker; its former one is over. @returns the number of the new one */
  join(worker: object): number {
    this.leave(worker);
    const performer = this.#performers.size + 1;
    this.#performers.set(performer, { worker, isDead: false, isOver: false });
    return performer;
  }

  /** Whether this worker has the lead; it takes it if no other worker has it. */
  lead(worker: object): boolean {
    this.#leader ??= worker;
    return this.#leader === worker;
  }

  /** Whether a worker that is alive has joined. */
  get hasAny(): boolean {
    return [...this.#performers.values()].some(({ isDead }) => !isDead);
  }

  /** The worker is gone: others may settle its duties. */
  leave(worker: object): void {
    if (this.#leader === worker) this.#leader = null;
    for (const performer of this.#performers.values()) if (performer.worker === worker) performer.isDead = true;
  }

  /** Declares the performers of a worker over although it is alive, as if its connection had been lost for long. */
  cutOff(worker: object): void {
    for (const performer of this.#performers.values()) if (performer.worker === worker) performer.isOver = true;
  }

  isStanding(performer: number): boolean {
    return this.#performers.get(performer)?.isOver === false;
  }

  /** Applies what an append changes in the duties of its performer. */
  apply(performer: number, { tree_id, taken, released, ended }: SharedAppend): void {
    for (const { run_id, kind } of taken) {
      this.#duties.set(`${kind} ${run_id}`, { run_id, kind, tree_id, performer, claimed: null });
    }
    for (const run_id of released) for (const kind of KINDS) this.#duties.delete(`${kind} ${run_id}`);
    if (!ended) return;
    for (const [key, duty] of this.#duties) if (duty.tree_id === tree_id) this.#duties.delete(key);
  }

  /** Takes over the duties of performers that are gone. */
  claim(performer: number, limit: number, except: readonly string[]): readonly ClaimedDuty[] {
    const claimed: ClaimedDuty[] = [];
    for (const [key, duty] of this.#duties) {
      if (except.includes(duty.tree_id)) continue;
      const holder = this.#performers.get(duty.performer);
      const isGone = holder === undefined || holder.isDead || holder.isOver;
      const isMine = duty.performer === performer && duty.claimed !== null;
      if ((!isGone && !isMine) || claimed.length === limit) continue;
      if (holder !== undefined && isGone) holder.isOver = true;
      const { run_id, kind, tree_id } = duty;
      const isDead = duty.claimed?.isDead ?? holder?.isDead === true;
      this.#duties.set(key, { run_id, kind, tree_id, performer, claimed: { isDead } });
      claimed.push({ run_id, kind, tree_id, isDead });
    }
    return claimed;
  }

  /** Whether the performer has all of these duties. */
  hasAll(performer: number | null, duties: readonly Duty[]): boolean {
    return duties.every(({ kind, run_id }) => this.#duties.get(`${kind} ${run_id}`)?.performer === performer);
  }

  /** No performer has these duties any more. */
  giveUp(duties: readonly Duty[]): void {
    for (const { kind, run_id } of duties) {
      const duty = this.#duties.get(`${kind} ${run_id}`);
      if (duty !== undefined) this.#duties.set(`${kind} ${run_id}`, { ...duty, performer: NO_PERFORMER });
    }
  }

  release(duties: readonly Duty[]): void {
    for (const { kind, run_id } of duties) this.#duties.delete(`${kind} ${run_id}`);
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

const NO_PERFORMER = 0;
const KINDS: readonly Duty['kind'][] = ['effect', 'caller'];
