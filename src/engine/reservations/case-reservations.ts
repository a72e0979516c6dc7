// The growth of a case's sandbox by changes that are decided but not yet made. Several trees work in one case, and a
// change runs after the commit of its decision, so comparing the quota with current usage alone would be wrong. The
// engine records this amount next to the usage, as a fact of the decision's input (C82).

import { findAction } from '../../core/contract/policy/catalogue.js';
import type { Effect, SandboxRequest, PathFact, SandboxAmount, SandboxFacts } from '../../core/contract/run/effect.js';

/** A sandbox change that is decided but not yet made. */
export type SandboxChange = Pick<Effect, 'action' | 'args' | 'before' | 'case_id' | 'idempotency_key'>;

/** The amount that one change reserves. */
interface Reservation {
  readonly paths: readonly string[];
  readonly amount: SandboxAmount;
}

interface CaseBook {
  readonly changes: Map<string, Reservation>;
  /** Number of changes per path. */
  readonly paths: Map<string, number>;
  bytes: number;
  files: number;
}

/** The reservations of all cases. It uses no clock and no I/O; the engine calls it in the order of its decisions. */
export class CaseReservations {
  readonly #cases = new Map<string, CaseBook>();
  /** Case by reservation key. */
  readonly #keys = new Map<string, string>();
  /** Reservation keys by tree; a key is the id of a mediated run. */
  readonly #trees = new Map<string, Set<string>>();

  get size(): number {
    return this.#keys.size;
  }

  /**
   * Reserves what a change may add. Reserving the same change again has no effect.
   * @returns whether this call reserved it
   */
  reserve(change: SandboxChange): boolean {
    const { case_id, idempotency_key } = change;
    const paths = changedPaths(change);
    if (case_id === null || paths.length === 0 || this.#keys.has(idempotency_key)) return false;
    const book = this.#cases.get(case_id) ?? { changes: new Map(), paths: new Map(), bytes: 0, files: 0 };
    const isLater = paths.some((path) => book.paths.has(path));
    const reservation = { paths, amount: amountOf(change, isLater) };
    this.#cases.set(case_id, book);
    this.#keys.set(idempotency_key, case_id);
    const keys = this.#trees.get(treeOf(idempotency_key)) ?? new Set();
    this.#trees.set(treeOf(idempotency_key), keys.add(idempotency_key));
    book.changes.set(idempotency_key, reservation);
    addToBook(book, reservation, 1);
    return true;
  }

  /** Releases a reservation: the change is made, or never will be. */
  release(idempotency_key: string): void {
    const case_id = this.#keys.get(idempotency_key);
    const book = case_id === undefined ? undefined : this.#cases.get(case_id);
    const reservation = book?.changes.get(idempotency_key);
    if (case_id === undefined || book === undefined || reservation === undefined) return;
    this.#keys.delete(idempotency_key);
    this.#removeKey(idempotency_key);
    book.changes.delete(idempotency_key);
    addToBook(book, reservation, -1);
    if (book.changes.size === 0) this.#cases.delete(case_id);
  }

  /** Releases the reservations of this agent run's mediated runs when its step ends. */
  releaseStep(agent_run_id: string): void {
    const prefix = `${agent_run_id}.`;
    for (const key of [...(this.#trees.get(treeOf(agent_run_id)) ?? [])]) if (key.startsWith(prefix)) this.release(key);
  }

  /** Releases all reservations of a tree. */
  releaseTree(tree_id: string): void {
    for (const key of [...(this.#trees.get(tree_id) ?? [])]) this.release(key);
  }

  /**
   * What a decision must count in addition to the usage. If another change affects a requested path, the file now at
   * that path counts too: it may be gone or elsewhere when this change runs.
   */
  computeReserved({ case_id, paths }: SandboxRequest, facts: SandboxFacts): SandboxAmount {
    const book = this.#cases.get(case_id);
    if (book === undefined) return NO_AMOUNT;
    let { bytes, files } = book;
    for (const [index, path] of paths.entries()) {
      if (!book.paths.has(withoutTrailingSlash(path))) continue;
      bytes += bytesAt(facts.paths[index]);
      files += isThere(facts.paths[index]) ? 1 : 0;
    }
    return { bytes, files };
  }

  clear(): void {
    this.#cases.clear();
    this.#keys.clear();
    this.#trees.clear();
  }

  #removeKey(key: string): void {
    const keys = this.#trees.get(treeOf(key));
    keys?.delete(key);
    if (keys?.size === 0) this.#trees.delete(treeOf(key));
  }
}

const treeOf = (run_id: string): string => run_id.split('.', 1)[0] ?? run_id;

const NO_AMOUNT: SandboxAmount = { bytes: 0, files: 0 };

/** The paths that an action changes in a sandbox; empty if it changes none. */
export function changedPaths({ action, args }: Pick<SandboxChange, 'action' | 'args'>): readonly string[] {
  const definition = findAction(action);
  return definition?.write == null ? [] : definition.paths.map((name) => withoutTrailingSlash(args[name]));
}

/** What a change may add to the usage. @param isLater whether an earlier decision already changes one of its paths */
export function amountOf({ action, args, before: [fact] }: SandboxChange, isLater: boolean): SandboxAmount {
  if (findAction(action)?.risk !== 'write') return NO_AMOUNT;
  const { content } = args;
  const bytes = typeof content === 'string' ? Buffer.byteLength(content) : 0;
  return isLater ? { bytes, files: 1 } : { bytes: Math.max(0, bytes - bytesAt(fact)), files: isThere(fact) ? 0 : 1 };
}

function addToBook(book: CaseBook, { paths, amount }: Reservation, sign: 1 | -1): void {
  book.bytes += sign * amount.bytes;
  book.files += sign * amount.files;
  for (const path of paths) {
    const changes = (book.paths.get(path) ?? 0) + sign;
    if (changes === 0) book.paths.delete(path);
    else book.paths.set(path, changes);
  }
}

/** A trailing slash names the same directory. */
export const withoutTrailingSlash = (path: unknown): string =>
  typeof path === 'string' ? path.replace(/\/$/, '') : '';

/** What is at a path. */
export const amountAt = (fact: PathFact | undefined): SandboxAmount => ({
  bytes: bytesAt(fact),
  files: isThere(fact) ? 1 : 0,
});

const bytesAt = (fact: PathFact | undefined): number => (fact?.status === 'file' ? fact.bytes : 0);

const isThere = (fact: PathFact | undefined): boolean => fact?.status === 'file' || fact?.status === 'directory';
