// The growth of a case's sandbox by changes that are decided but not yet made. Several trees work in one case, and a
// change runs after the commit of its decision, so comparing the quota with current usage alone would be wrong. The
// engine records this amount next to the usage, as a fact of the decision's input (C82).

import type { Effect, SandboxRequest, PathFact, SandboxAmount, SandboxFacts } from '../../core/contract/run/effect.js';
import type { Decision } from '../../kernel/decision.js';
import { type Tree, listDecidedChanges, findPendingGather } from '../../kernel/tree.js';
import type { EffectOutcome } from '../effect-runner.js';
import { withReserved } from '../tick/tick-inputs.js';
import type { Submission } from '../tree-engine.js';
import { changedPaths, findAction, withoutTrailingSlash } from '../../core/contract/policy/catalogue.js';

/** The reservations of cases, as the engine decides, commits and runs effects. */
export interface Reservations {
  /** Number of reserved changes. */
  readonly size: number;
  /** Starts a tick: the reservations of the previous one are committed, or the engine has failed. */
  startTick(): void;
  /** Adds the reservations of others to facts that a quota is compared with. Returns any other submission unchanged. */
  addReserved(tree: Tree, submission: Submission): Submission;
  /** Reserves for the changes of a decision, and releases those of the steps that it ends. */
  applyDecision(tree: Tree, decision: Decision): void;
  onEffectRun(effect: Effect, outcome: EffectOutcome): void;
  /** Keeps the tree's reservations so far: they are in the batch, whatever happens to its next input. */
  join(tree_id: string): void;
  /** Releases what the tree reserved since it last joined the batch, because the tree has failed. */
  undo(tree_id: string): void;
  /** Releases everything that the tree has reserved: its memory differs from the ledger. */
  forget(tree_id: string): void;
  /** Reserves again for the decided changes of a tree that recovery has folded. */
  restore(tree: Tree): void;
  clear(): void;
}

/** The reservations of the only worker, in memory. */
export class QuotaReservations implements Reservations {
  readonly #cases = new CaseReservations();
  /** Keys reserved in the current tick, by tree; they are not committed yet. */
  readonly #uncommitted = new Map<string, string[]>();

  get size(): number {
    return this.#cases.size;
  }

  startTick(): void {
    this.#uncommitted.clear();
  }

  addReserved(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (this.#cases.size === 0 || input.kind !== 'facts') return submission;
    const request = findPendingGather(tree, input.run_id);
    if (request === null || !request.usage) return submission;
    return withReserved(submission, this.#cases.computeReserved(request, input.facts));
  }

  applyDecision({ tree_id }: Tree, { commands, entries }: Decision): void {
    for (const command of commands) {
      if (command.kind !== 'perform' || command.in_commit || !this.#cases.reserve(command.effect)) continue;
      const { idempotency_key } = command.effect;
      this.#uncommitted.set(tree_id, [...(this.#uncommitted.get(tree_id) ?? []), idempotency_key]);
    }
    if (this.#cases.size === 0) return;
    for (const { entry } of entries) if (entry.type === 'step_trace') this.#cases.releaseStep(entry.body.run_id);
  }

  /**
   * Releases a completed change, which the usage now includes. A failed one stays reserved, because its step may retry
   * it.
   */
  onEffectRun({ idempotency_key }: Effect, { status }: EffectOutcome): void {
    if (status === 'done') this.#cases.release(idempotency_key);
  }

  join(tree_id: string): void {
    this.#uncommitted.delete(tree_id);
  }

  undo(tree_id: string): void {
    for (const key of this.#uncommitted.get(tree_id) ?? []) this.#cases.release(key);
    this.#uncommitted.delete(tree_id);
  }

  forget(tree_id: string): void {
    this.#cases.releaseTree(tree_id);
    this.#uncommitted.delete(tree_id);
  }

  restore(tree: Tree): void {
    for (const change of listDecidedChanges(tree)) this.#cases.reserve(change);
  }

  clear(): void {
    this.#cases.clear();
    this.#uncommitted.clear();
  }
}

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

/** What is at a path. */
export const amountAt = (fact: PathFact | undefined): SandboxAmount => ({
  bytes: bytesAt(fact),
  files: isThere(fact) ? 1 : 0,
});

const bytesAt = (fact: PathFact | undefined): number => (fact?.status === 'file' ? fact.bytes : 0);

const isThere = (fact: PathFact | undefined): boolean => fact?.status === 'file' || fact?.status === 'directory';
