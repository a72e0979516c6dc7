// The agent runs in which decisions are recorded: one live run for each caller, and the next one when it has ended. The
// ids follow from the caller and a number, so every process finds the same run.

import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { createLruMap } from '../../system/lru-map.js';
import type { Agents } from '../../runtime/agents/agents.js';
import type { DecisionCaller } from '../../runtime/agents/decision-request.js';
import { keyedRoot, startKeyedRun } from '../../runtime/agents/keyed-runs.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import type { LedgerReader } from '../../runtime/ledger/ledger-reader.js';

export interface DecisionRunsParts {
  readonly agents: Agents;
  readonly engine: Pick<TreeEngine, 'peek'>;
  readonly ledger: Pick<LedgerReader, 'run' | 'entries'>;
}

/** `denied`: policy allows the caller no run; the record of this request is the denied run. */
export type DecisionRun =
  | { readonly state: 'live'; readonly run_id: string; readonly isExternalTool: (tool: string) => boolean }
  | { readonly state: 'denied'; readonly run_id: string; readonly rule: string | null };

/** How many runs one caller may have, one after another. */
const RUNS_MAX = 1_048_576;
/** Of how many callers the number of the newest run is in memory. It only saves lookups. */
const REMEMBERED_MAX = 4_096;

export class DecisionRuns {
  readonly #parts: DecisionRunsParts;
  readonly #newest = createLruMap<number>(REMEMBERED_MAX);

  constructor(parts: DecisionRunsParts) {
    this.#parts = parts;
  }

  /** The live run of a caller, which is started if it does not exist. */
  async find(caller: DecisionCaller): Promise<DecisionRun> {
    const { actor, person, role, lane = AGENT_DEFAULTS.lane, case: case_id } = caller;
    const name = sha256(canonicalJson([actor, person ?? null, role, lane, case_id ?? null]));
    const newest = await this.#newestRun(name);
    const live = newest < 0 ? null : await this.#findLive(keyOf(name, newest));
    if (live !== null) return live;
    const next = newest + 1;
    const options = {
      ...{ actor, role, lane },
      ...omitUndefined({ case: case_id, person }),
    };
    const { run_id } = await startKeyedRun(this.#parts, { ...options, key: keyOf(name, next) });
    this.#newest.set(name, next);
    return (await this.#findLive(keyOf(name, next))) ?? { state: 'denied', run_id, rule: await this.#ruleOf(run_id) };
  }

  async #findLive(key: string): Promise<DecisionRun | null> {
    const root = keyedRoot(key);
    const run_id = `${root}.1`;
    const tree = await this.#parts.engine.peek(root);
    if (tree?.isLive(run_id) !== true) return null;
    const { policy } = tree;
    // The registrations are those that the tree has pinned: another process may have others.
    return { state: 'live', run_id, isExternalTool: (tool) => policy?.catalogue.tool(tool)?.external === true };
  }

  /** The rule by which policy denied a run. */
  async #ruleOf(run_id: string): Promise<string | null> {
    const root = run_id.slice(0, run_id.includes('.') ? run_id.indexOf('.') : run_id.length);
    let rule: string | null = null;
    for await (const { type, body } of this.#parts.ledger.entries(root)) {
      if (type === 'audit_event' && body.authz?.decision === 'deny') rule = body.authz.rule_id;
    }
    return rule;
  }

  /** The number of the newest run of a caller, or -1: numbers have no gap, so it is found by bisection. */
  async #newestRun(name: string): Promise<number> {
    let low = (this.#newest.get(name) ?? -1) + 1;
    let high = low + 1;
    if (!(await this.#exists(name, low))) return low - 1;
    while (high < RUNS_MAX && (await this.#exists(name, high))) [low, high] = [high, high * 2];
    while (low + 1 < high) {
      const middle = Math.floor((low + high) / 2);
      if (await this.#exists(name, middle)) low = middle;
      else high = middle;
    }
    this.#newest.set(name, low);
    return low;
  }

  async #exists(name: string, number: number): Promise<boolean> {
    return (await this.#parts.engine.peek(keyedRoot(keyOf(name, number)))) !== null;
  }
}

const keyOf = (name: string, number: number): string => `decide:${name}:${number}`;
