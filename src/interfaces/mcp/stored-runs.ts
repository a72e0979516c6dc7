// The own runs of an agent of the stateless protocol. Any request may reach any process on the same store, so the store
// alone determines which run is the agent's own: its run ids are derived from the agent and two numbers. What a process
// remembers only makes the next search shorter.

import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { runIdOfKey } from '../../runtime/agents/keyed-runs.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import { INPUT_PLACES_MAX } from '../../runtime/agents/remote-agents.js';
import { isContinuable, type EndedRun } from './ended-run.js';
import type { OwnRuns } from './own-runs.js';
import type { AgentIdentity, OwnRun, RunGateway } from './run-gateway.js';
import type { RunSuccession } from './run-succession.js';
import { inputIdOf, type CallAttempt, type CallHistory } from './tool-calls.js';

/**
 * Where a run is among the runs of its agent. `ended` counts the runs before it that were denied, failed or were
 * cancelled; `index` counts the runs since the last of those. A place has a run only if all places before it have one.
 */
interface RunPlace {
  readonly ended: number;
  readonly index: number;
}

const FIRST: RunPlace = { ended: 0, index: 0 };

interface StoredRunsOptions {
  readonly agentRuns: Pick<RunGateway, 'startKeyed' | 'findKeyed' | 'findInput'>;
  readonly identity: AgentIdentity;
  readonly succession: RunSuccession;
  /** How many runs may follow runs that were denied, failed or were cancelled; null for any number. */
  readonly newRunsMax: number | null;
}

/** The runs of one agent, whatever process serves its requests. */
export class StoredRuns implements OwnRuns, CallHistory {
  readonly #options: StoredRunsOptions;
  readonly #agent: string;
  /** A place that had a run when it was last looked at. */
  #known: RunPlace | null = null;

  constructor(options: StoredRunsOptions) {
    this.#options = options;
    const { actor, role, lane, case: case_id, person = actor } = { ...AGENT_DEFAULTS, ...options.identity };
    this.#agent = sha256(canonicalJson(['agent over MCP', actor, person, role, lane, case_id ?? null]));
  }

  async current(): Promise<OwnRun | null> {
    const place = await this.#findLast();
    return place === null ? null : this.#find(place);
  }

  async begin(previous: OwnRun | null, trace: TraceCarrier | undefined): Promise<OwnRun> {
    const { agentRuns, succession } = this.#options;
    const place = previous === null ? FIRST : await this.#placeAfter(previous);
    const own = await agentRuns.startKeyed(this.#keyOf(place), `cor_${this.#agent.slice(0, 24)}`, trace);
    this.#known = place;
    succession.observe(own);
    return own;
  }

  async findRefusal(ended: EndedRun | null): Promise<EndedRun | null> {
    const { newRunsMax, succession } = this.#options;
    if (newRunsMax === null) return null;
    const last = await this.#findLast();
    if (ended !== null && !isContinuable(ended) && last !== null && last.ended >= newRunsMax) return ended;
    return succession.findRefusal();
  }

  /** Searches the named run and the last runs of the agent: the run into which an earlier attempt went. */
  async find({ mark, isKeyed, requestedRun }: CallAttempt): Promise<string | null> {
    if (!isKeyed) return null;
    const recent = await this.#recentRuns(requestedRun === null ? INPUT_PLACES_MAX : INPUT_PLACES_MAX - 1);
    const runs = new Set(requestedRun === null ? recent : [requestedRun, ...recent]);
    const places = [...runs].map((run_id) => ({ run_id, inputId: inputIdOf(run_id, mark) }));
    return (await this.#options.agentRuns.findInput(places))?.run_id ?? null;
  }

  /** The ledger remembers. */
  remember(): void {
    return undefined;
  }

  forget(): void {
    return undefined;
  }

  /** @returns the place of the last run; null before the first one */
  async #findLast(): Promise<RunPlace | null> {
    const known = this.#known;
    // Nothing follows a run that has not ended.
    if (known !== null && (await this.#find(known))?.ending === null) return known;
    if (known === null && !(await this.#exists(FIRST))) return null;
    const start = known ?? FIRST;
    const ended = await findLastNumber(start.ended, (number) => this.#exists({ ended: number, index: 0 }));
    const last = await this.#lastOf(ended, ended === start.ended ? start.index : 0);
    this.#known = last;
    return last;
  }

  /** The last run after the same number of runs that were denied, failed or were cancelled. */
  async #lastOf(ended: number, from: number): Promise<RunPlace> {
    return { ended, index: await findLastNumber(from, (index) => this.#exists({ ended, index })) };
  }

  async #placeAfter(previous: OwnRun): Promise<RunPlace> {
    const last = (await this.#findLast()) ?? FIRST;
    const run = await this.#find(last);
    // Another process has begun the next run meanwhile.
    if (run === null || run.run_id !== previous.run_id || run.ending === null) return last;
    return isContinuable(run.ending)
      ? { ended: last.ended, index: last.index + 1 }
      : { ended: last.ended + 1, index: 0 };
  }

  /** The ids of the last runs, the latest first. */
  async #recentRuns(count: number): Promise<readonly string[]> {
    const runs: string[] = [];
    let place = await this.#findLast();
    while (place !== null && runs.length < count) {
      const { ended, index } = place;
      for (let number = index; number >= 0 && runs.length < count; number -= 1) {
        runs.push(runIdOfKey(this.#keyOf({ ended, index: number })));
      }
      place = ended === 0 || runs.length >= count ? null : await this.#lastOf(ended - 1, 0);
    }
    return runs;
  }

  #find(place: RunPlace): Promise<OwnRun | null> {
    return this.#options.agentRuns.findKeyed(this.#keyOf(place));
  }

  async #exists(place: RunPlace): Promise<boolean> {
    return (await this.#find(place)) !== null;
  }

  #keyOf({ ended, index }: RunPlace): string {
    return `mcp/${this.#agent.slice(0, 48)}/${ended}/${index}`;
  }
}

/**
 * The largest number for which `holds` is true, if it is true for `from` and false for all numbers after a false one.
 * With twice as many calls as the result has binary digits, because an agent may have any number of runs.
 */
async function findLastNumber(from: number, holds: (number: number) => Promise<boolean>): Promise<number> {
  let [low, step] = [from, 1];
  while (await holds(low + step)) [low, step] = [low + step, step * 2];
  let high = low + step;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}
