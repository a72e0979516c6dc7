// The runs, and of each its rows, states and step outcomes. They are updated as rows arrive, so that moving the cursor
// needs no search.

import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';
import type { RunKind } from '../../../../../core/contract/run/run-context.js';
import { NumberList } from './number-list.js';
import { sessionStateOf, displayStateAt, NEEDS_APPROVAL_STATE, type Rows, type DisplayState } from './rows.js';
import { toneAt } from './tones.js';

/** A run; or a session, which is not a run but has a tree. */
export interface Run {
  /** The number of its id. */
  readonly key: number;
  readonly id: string;
  readonly tree: number;
  readonly rows: NumberList;
  /** Entries after which the run is in another state, and that state. */
  readonly changed: NumberList;
  readonly states: NumberList;
  /** What is shown as that state: a run whose request needs an approval says so, created or denied. */
  readonly shown: NumberList;
  /** By step, from 1: the entry of its trace, or -1. */
  readonly traces: NumberList;
  readonly children: number[];
}

export class Runs {
  readonly #rows: Rows;
  readonly #runs = new Map<number, Run>();
  #from = -1;
  #to = -1;
  /** Oldest first; displayed newest first. */
  readonly roots: number[] = [];
  /** The last row of each tree. */
  readonly #creations = new NumberList();
  readonly #last = new Map<number, number>();
  /** The inputs of each tree. Every other entry, and every move of a machine, is caused by the input before it. */
  readonly #inputs = new Map<number, NumberList>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Processes new rows. Rows before the first known one cause all rows to be processed again. */
  update(): void {
    const { first, end } = this.#rows;
    if (this.#from !== first) {
      this.#runs.clear();
      this.roots.length = 0;
      this.#creations.clear();
      this.#inputs.clear();
      this.#to = first;
    }
    for (let at = this.#to; at < end; at += 1) this.#add(at);
    this.#from = first;
    this.#to = end;
  }

  get size(): number {
    return this.#runs.size;
  }
  some(test: (run: Run) => boolean): boolean {
    for (const run of this.#runs.values()) if (test(run)) return true;
    return false;
  }
  get(key: number): Run | null {
    return this.#runs.get(key) ?? null;
  }
  byId(id: string): Run | null {
    return this.get(this.#rows.ids.find(id));
  }

  /** The id of the parent run. */
  parentOf(run: Run): string | null {
    const parent = this.#parentOf(run.id, run.key, run.tree);
    return parent === null || !this.#runs.has(parent) ? null : this.#rows.ids.at(parent);
  }

  /** The number of runs after an entry. */
  countUntil(at: number): number {
    return this.#creations.countBelow(at + 1);
  }

  lastOfTree(tree: number): number {
    return this.#last.get(tree) ?? -1;
  }

  /** The inputs of a tree, oldest first. */
  inputsOf(tree: number): NumberList {
    const known = this.#inputs.get(tree) ?? new NumberList();
    this.#inputs.set(tree, known);
    return known;
  }

  /** Whether the tree has grown between two entries. */
  isAhead(tree: number, known: number, at: number): boolean {
    return known > at && this.lastOfTree(tree) > at;
  }

  #add(at: number): void {
    const rows = this.#rows;
    const run = this.#runOf(rows.run(at), rows.tree(at));
    this.#last.set(rows.tree(at), at);
    if (run.rows.length === 0) this.#creations.push(at);
    run.rows.push(at);
    const type = rows.types.at(rows.type(at));
    if (type === 'input') this.inputsOf(rows.tree(at)).push(at);
    if (type === 'session_event') this.#addSessionRow(at);
    const needsApproval = toneAt(rows.tone(at)) === NEEDS_APPROVAL && rows.step(at) === 0;
    const state = rows.state(at);
    if (state >= 0 || needsApproval) {
      run.changed.push(at);
      run.states.push(state >= 0 ? state : run.states.last);
      run.shown.push(needsApproval ? NEEDS_APPROVAL_STATE : state);
    }
    const step = rows.step(at);
    if (step > 0) {
      while (run.traces.length < step - 1) run.traces.push(-1);
      if (run.traces.length < step) run.traces.push(at);
    }
  }

  /** An event of a session may name a run that it is about; it changes the session's state in any case. */
  #addSessionRow(at: number): void {
    const state = sessionStateOf(this.#rows.labels.at(this.#rows.label(at)));
    if (state < 0) return;
    const tree = this.#rows.tree(at);
    const session = this.#runOf(tree, tree);
    session.changed.push(at);
    session.states.push(state);
    session.shown.push(state);
  }

  #runOf(key: number, tree: number): Run {
    const known = this.#runs.get(key);
    if (known !== undefined) return known;
    const id = this.#rows.ids.at(key);
    const run: Run = {
      key,
      id,
      tree,
      rows: new NumberList(),
      changed: new NumberList(),
      states: new NumberList(),
      shown: new NumberList(),
      traces: new NumberList(),
      children: [],
    };
    this.#runs.set(key, run);
    const parent = this.#parentOf(id, key, tree);
    if (parent === null) this.roots.push(key);
    else this.#runOf(parent, tree).children.push(key);
    return run;
  }

  /** From the facts of its creation; otherwise from its id, which is its parent's id with an ordinal. */
  #parentOf(id: string, key: number, tree: number): number | null {
    const parentName = this.#rows.creations.get(key)?.parent ?? parentId(id);
    if (parentName !== null) return this.#rows.ids.add(parentName);
    return key === tree ? null : tree;
  }
}

const parentId = (id: string): string | null => {
  const dot = id.lastIndexOf('.');
  return dot < 0 ? null : id.slice(0, dot);
};

/** The state after the entry `at`; null before the run was created. */
export function stateOf(run: Run, at: number): DisplayState | null {
  const place = run.changed.countBelow(at + 1);
  return place === 0 ? null : displayStateAt(run.states.at(place - 1));
}

/** The state as it is shown; null before the run was created. */
export function displayStateOf(run: Run, at: number): DisplayState | null {
  const place = run.changed.countBelow(at + 1);
  return place === 0 ? null : displayStateAt(run.shown.at(place - 1));
}

/** The first entry of the run. */
export const firstEntryOf = (run: Run): number => run.rows.at(0);

export const kindOf = (rows: Rows, run: Run): RunKind | 'session' =>
  rows.creations.get(run.key)?.kind ?? (run.id.startsWith('ses_') ? 'session' : 'orchestrator');

/** The last part of an id, short enough for a line. */
export function shortId(id: string): string {
  const dot = id.indexOf('.');
  const root = dot < 0 ? id : id.slice(0, dot);
  const rest = dot < 0 ? '' : id.slice(dot);
  return rest === '' ? root.replace(/^(?:run|ses)_/, '').slice(0, 8) : rest;
}
