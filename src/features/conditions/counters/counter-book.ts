// How much each counter has counted, from the entries of the ledger alone.
//
//   N1. A step is counted from the entry with its facts on, so a decision counts all steps decided before it.
//   N2. The trace of the step settles it: nothing remains of a denied or failed one; one that has happened, or may
//       have, stays. What a step gives back counts only once it has certainly happened.
//   N3. An unknown outcome counts until a person resolves it. A later report of the caller changes nothing: it proves
//       nothing.
//   N4. Steps are kept for as long as the longest window. Counters without a window need only their sum.

import { windowStart } from './window-start.js';
import {
  counterFact,
  type CounterFact,
  type CounterQuery,
  type CounterWindow,
} from '../../../core/contract/run/counter-fact.js';
import type { Entry, FactsInput, RecordedInput } from '../../../core/contract/run/entry.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import type { TreeEntry } from '../../../core/ledger/readable-ledger.js';
import type { FactTotal } from '../../../engine/ledger-facts.js';
import { CounterAccount } from './counter-account.js';

const UNKNOWN_MAX = 65_536;
/** Longer than every window: 999 hours, or a month. */
const KEPT_MS = 45 * 86_400_000;

/** What counts a step that has no trace yet, or whose outcome is unknown. */
interface OpenStep {
  /** Of its facts, in its tree. */
  readonly seq: number;
  readonly at: number;
  readonly counters: readonly CounterFact[];
  /** The attempt whose outcome is unknown; null: none. */
  unknown_run_id: string | null;
}

/** What an entry has changed. */
export interface AppliedEntry {
  /** The counters with other steps now. */
  readonly changed: readonly CounterFact[];
  /** Takes it back. Entries of one tree are taken back in the reverse order. */
  undo(): void;
}

const NOTHING_CHANGED: readonly CounterFact[] = [];

export class CounterBook {
  readonly #accounts = new Map<string, CounterAccount>();
  /** The accounts of runs and trees, by their tree: they are of no use once it has ended. */
  readonly #ofTree = new Map<string, Set<string>>();
  /** By the agent run whose steps they are. A worker can learn late that an earlier one has ended. */
  readonly #open = new Map<string, OpenStep[]>();
  /** Steps with an unknown outcome, by their mediated run. */
  readonly #unknown = new Map<string, OpenStep>();
  #latest = -Infinity;
  /** Before this time, in ms, the book lacks steps: their entries were archived. Infinity: no later entry is known. */
  #completeFrom: number;

  /** @param isWhole whether no entries were archived */
  constructor(isWhole: boolean) {
    this.#completeFrom = isWhole ? -Infinity : Infinity;
  }

  /** Notes the time of an input. The book is complete from the first on. */
  noteTime(time: string): void {
    if (this.#completeFrom === Infinity) this.#completeFrom = Date.parse(time);
  }

  /** Whether a first input is still to be noted. */
  get hasNoBeginning(): boolean {
    return this.#completeFrom === Infinity;
  }

  /** What the counters of a request have counted at this time, as its facts record them. */
  read(queries: readonly CounterQuery[], time: string): readonly CounterFact[] {
    return queries.map((query) => this.#read(query, Math.max(Date.parse(time), this.#latest)));
  }

  #read(query: CounterQuery, at: number): CounterFact {
    const { name, key, window } = query;
    const from = window === undefined ? null : windowStart(window, at);
    const since = from === null ? null : new Date(from).toISOString();
    const isKnown = (from ?? -Infinity) >= this.#completeFrom;
    return counterFact(query, isKnown ? this.#used(accountKey({ name, key }), window, from) : null, since);
  }

  /** What each counter has counted of each subject, of all time. */
  totals(): readonly FactTotal[] {
    return [...this.#accounts].map(([id, { total }]) => {
      const [name = '', ...key] = id.split(' ');
      return { name, key: key.join(' '), total: Math.max(0, total) };
    });
  }

  /** What is given back may be more than what was used in the window. */
  #used(key: string, window: CounterWindow | undefined, from: number | null): number | null {
    const account = this.#accounts.get(key);
    if (account === undefined) return 0;
    const used = from === null ? account.total : account.sumSince(JSON.stringify(window), from);
    return Number.isSafeInteger(used) ? Math.max(0, used) : null;
  }

  /** Whether the book needs the entry that this text is: entries that are read one by one need not be parsed for it. */
  needs({ type, text }: Pick<TreeEntry, 'type' | 'text'>): boolean {
    if (type === 'step_trace') return this.#open.size > 0;
    return type === 'input' && INPUTS.some((part) => text.includes(part));
  }

  /** Adds an entry. Entries of a tree come in their order. @returns null for an entry that is nothing to counters */
  apply(entry: Entry): AppliedEntry | null {
    if (entry.type === 'step_trace') return this.#settle(entry.body, entry.seq);
    if (entry.type !== 'input') return null;
    this.noteTime(entry.body.time);
    return this.#applyInput(entry.body, entry.seq);
  }

  #applyInput(input: RecordedInput, seq: number): AppliedEntry | null {
    if (input.kind === 'facts' && input.counters !== undefined) return this.#begin(input, input.counters, seq);
    if (input.kind === 'result' && input.status === 'unknown') return this.#noteUnknown(input.run_id, seq);
    return input.kind === 'resolve' ? this.#resolve(input.run_id, input.outcome === 'done') : null;
  }

  #begin({ run_id, time }: FactsInput, counters: readonly CounterFact[], seq: number): AppliedEntry {
    const step: OpenStep = { seq, at: Date.parse(time), counters, unknown_run_id: null };
    this.#latest = Math.max(this.#latest, step.at);
    this.#reopen(run_id, step);
    return this.#change(step, ADDED, 1, () => this.#close(run_id, step));
  }

  /** The id of a mediated run begins with that of the agent run. */
  #noteUnknown(mediated_run_id: string, seq: number): AppliedEntry | null {
    for (let end = mediated_run_id.lastIndexOf('.'); end > 0; end = mediated_run_id.lastIndexOf('.', end - 1)) {
      const step = this.#openBefore(mediated_run_id.slice(0, end), seq);
      if (step === undefined) continue;
      const { unknown_run_id } = step;
      step.unknown_run_id = mediated_run_id;
      return { changed: NOTHING_CHANGED, undo: () => void (step.unknown_run_id = unknown_run_id) };
    }
    return null;
  }

  /** N2. */
  #settle(trace: StepTrace, seq: number): AppliedEntry | null {
    const { run_id, decision, outcome, cause, result, mediated_run_id } = trace;
    const step = this.#openBefore(run_id, seq);
    if (step === undefined) return null;
    this.#close(run_id, step);
    const reopen = (): void => this.#reopen(run_id, step);
    const hasSucceeded = decision === 'ALLOW' && outcome === 'SUCCESS';
    // The caller executes a step without a result, and nothing proves that it has.
    const isUnknown = hasSucceeded
      ? result === null
      : decision === 'ALLOW' && (step.unknown_run_id !== null || MAY_HAVE_HAPPENED.has(cause ?? ''));
    if (isUnknown) return this.#noteOpen(step.unknown_run_id ?? mediated_run_id, step, reopen);
    return hasSucceeded ? this.#change(step, GIVEN_BACK, 1, reopen) : this.#change(step, ADDED, -1, reopen);
  }

  /** The step of an agent run that an entry with this seq is about. */
  #openBefore(run_id: string, seq: number): OpenStep | undefined {
    return this.#open
      .get(run_id)
      ?.filter((step) => step.seq < seq)
      .at(-1);
  }

  #reopen(run_id: string, step: OpenStep): void {
    const steps = [...(this.#open.get(run_id) ?? []), step];
    this.#open.set(
      run_id,
      steps.toSorted((one, other) => one.seq - other.seq),
    );
  }

  #close(run_id: string, step: OpenStep): void {
    const others = this.#open.get(run_id)?.filter((other) => other !== step) ?? [];
    if (others.length === 0) this.#open.delete(run_id);
    else this.#open.set(run_id, others);
  }

  /** Beyond the limit, the oldest can no longer be resolved, and stay counted. */
  #noteOpen(mediated_run_id: string | null, step: OpenStep, reopen: () => void): AppliedEntry {
    if (mediated_run_id === null) return { changed: NOTHING_CHANGED, undo: reopen };
    this.#unknown.set(mediated_run_id, step);
    const [oldest] = this.#unknown.keys();
    if (this.#unknown.size > UNKNOWN_MAX && oldest !== undefined) this.#unknown.delete(oldest);
    const undo = (): void => {
      this.#unknown.delete(mediated_run_id);
      reopen();
    };
    return { changed: NOTHING_CHANGED, undo };
  }

  /** N3. */
  #resolve(mediated_run_id: string, hasHappened: boolean): AppliedEntry | null {
    const step = this.#unknown.get(mediated_run_id);
    if (step === undefined) return null;
    this.#unknown.delete(mediated_run_id);
    const reopen = (): void => void this.#unknown.set(mediated_run_id, step);
    return hasHappened ? this.#change(step, GIVEN_BACK, 1, reopen) : this.#change(step, ADDED, -1, reopen);
  }

  #change({ at, counters }: OpenStep, applies: Applies, sign: 1 | -1, undoStep: () => void): AppliedEntry {
    const changed = counters.filter(({ adds }) => applies(adds));
    const count = (direction: number): void => {
      for (const fact of changed) {
        const account = this.#accountOf(fact);
        if (direction === 1) account.add({ at, adds: fact.adds });
        else account.remove({ at, adds: fact.adds });
        account.dropBefore(this.#latest - KEPT_MS);
      }
    };
    count(sign);
    const undo = (): void => {
      count(-sign);
      undoStep();
    };
    return { changed, undo };
  }

  #accountOf({ name, key }: CounterFact): CounterAccount {
    const id = accountKey({ name, key });
    const known = this.#accounts.get(id);
    if (known !== undefined) return known;
    const account = new CounterAccount();
    this.#accounts.set(id, account);
    const tree_id = treeOf(key);
    if (tree_id !== null) this.#ofTree.set(tree_id, (this.#ofTree.get(tree_id) ?? new Set()).add(id));
    return account;
  }

  /** Forgets the counters over an ended tree and its runs. */
  endTree(tree_id: string): void {
    for (const id of this.#ofTree.get(tree_id) ?? []) this.#accounts.delete(id);
    this.#ofTree.delete(tree_id);
  }

  /** The number of trees with counters over them or their runs. */
  get treeCount(): number {
    return this.#ofTree.size;
  }

  /** Forgets the counters over all other trees and their runs. */
  keepTrees(open: ReadonlySet<string>): void {
    for (const tree_id of [...this.#ofTree.keys()]) if (!open.has(tree_id)) this.endTree(tree_id);
  }
}

/** The tree of a counter over a run or tree; null for any other. */
export function treeOf(key: string): string | null {
  if (!key.startsWith('run:') && !key.startsWith('tree:')) return null;
  return key.slice(key.indexOf(':') + 1).split('.', 1)[0] ?? null;
}

const INPUTS = ['"counters":[', '"status":"unknown"', '"kind":"resolve"'];
const MAY_HAVE_HAPPENED: ReadonlySet<string> = new Set(['OUTCOME_UNKNOWN', 'REPEATABLE']);

type Applies = (adds: number) => boolean;
const ADDED: Applies = (adds) => adds > 0;
const GIVEN_BACK: Applies = (adds) => adds < 0;

/** What identifies a counter of one subject. */
export const accountKey = ({ name, key }: Pick<CounterFact, 'name' | 'key'>): string => `${name} ${key}`;
