// The files that a session's agent runs have actually changed. The session compares its reports with them.

import type { FileActionName } from '../../../core/contract/policy/catalogue.js';
import type { Effect } from '../../../core/contract/run/effect.js';

/** Maximum paths per run: more than a step should touch, and more than a report may name. */
const PATHS_MAX = 10_000;

/** The arguments of each action on files that name a changed path. */
const CHANGED_PATH_ARGS: Readonly<Record<FileActionName, readonly string[]>> = {
  READ_FILE: [],
  LIST_FILES: [],
  WRITE_FILE: ['path'],
  CREATE_DIRECTORY: ['path'],
  DELETE_FILE: ['path'],
  RENAME_FILE: ['source', 'destination'],
};

export class TouchedFiles {
  /** Keyed by agent run. */
  readonly #byRun = new Map<string, Set<string>>();

  /** Records the paths that a completed effect has changed. */
  addChanges({ action, args, run_id }: Pick<Effect, 'action' | 'args' | 'run_id'>): void {
    const names = Object.hasOwn(CHANGED_PATH_ARGS, action) ? CHANGED_PATH_ARGS[action as FileActionName] : [];
    for (const name of names) {
      const path = args[name];
      if (typeof path === 'string') this.#add(agentOf(run_id), path);
    }
  }

  /** The paths that these agent runs have changed, each once. */
  pathsOf(run_ids: readonly string[]): readonly string[] {
    return [...new Set(run_ids.flatMap((run_id) => [...(this.#byRun.get(run_id) ?? [])]))];
  }

  /** Drops the paths of all other runs, which no report can ask for any more. */
  retainRuns(run_ids: readonly string[]): void {
    const retained = new Set(run_ids);
    for (const run_id of this.#byRun.keys()) if (!retained.has(run_id)) this.#byRun.delete(run_id);
  }

  toSnapshot(): readonly (readonly [string, readonly string[]])[] {
    return [...this.#byRun].map(([run_id, paths]) => [run_id, [...paths]] as const);
  }

  restore(touched: readonly (readonly [string, readonly string[]])[]): void {
    for (const [run_id, paths] of touched) this.#byRun.set(run_id, new Set(paths));
  }

  #add(run_id: string, path: string): void {
    const paths = this.#byRun.get(run_id) ?? new Set<string>();
    if (paths.size < PATHS_MAX) paths.add(path);
    this.#byRun.set(run_id, paths);
  }
}

/** `<session>.<activation>.<agent>` of any run below it (D11). */
const agentOf = (run_id: string): string => run_id.split('.').slice(0, 3).join('.');
