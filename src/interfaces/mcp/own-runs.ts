// The own run of an agent: the run of its proposals that name no other. A connection remembers its own run. An agent of
// the stateless protocol has it in the store: any request may reach any process on the same store, so the store alone
// determines which run is the agent's own. Its run ids are derived from the agent and two numbers, and what a process
// remembers only makes the next search shorter.

import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { type EndedRun, isContinuable, type OwnRun, type RunGateway, type AgentIdentity } from './run-gateway.js';
import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { runIdOfKey } from '../../runtime/agents/keyed-runs.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import { INPUT_PLACES_MAX } from '../../runtime/agents/remote-agents.js';
import { inputIdOf, type CallAttempt, type CallHistory } from './tool-calls.js';

export interface OwnRuns {
  /** The own run, which may have ended; null before the first one. */
  current(): Promise<OwnRun | null>;
  /** Begins the run that follows `previous`, the current one. It has an ending if policy denied its start. */
  begin(previous: OwnRun | null, trace: TraceCarrier | undefined): Promise<OwnRun>;
  /**
   * Whether the operator lets a run follow `ended`, the end of the current one.
   * @returns the run that counts, if no other run may follow; else null
   */
  findRefusal(ended: EndedRun | null): Promise<EndedRun | null>;
}

/** The run of an earlier connection of the same agent, and the function that stores the id of a run. */
export interface StoredRun {
  readonly run_id: string | null;
  readonly keep: (run_id: string) => void;
}

interface ConnectionRunsOptions {
  readonly agentRuns: Pick<RunGateway, 'start'>;
  readonly succession: RunSuccession;
  /** The correlation id of the runs. */
  readonly correlation: string;
  readonly storedRun?: StoredRun | undefined;
}

/** The runs of one connection. */
export class ConnectionRuns implements OwnRuns {
  readonly #options: ConnectionRunsOptions;
  #own: OwnRun | null;

  constructor(options: ConnectionRunsOptions) {
    this.#options = options;
    const run_id = options.storedRun?.run_id ?? null;
    this.#own = run_id === null ? null : { run_id, ending: null };
    if (this.#own !== null) options.succession.observe(this.#own);
  }

  current(): Promise<OwnRun | null> {
    return Promise.resolve(this.#own);
  }

  async begin(_previous: OwnRun | null, trace: TraceCarrier | undefined): Promise<OwnRun> {
    const { agentRuns, succession, correlation, storedRun } = this.#options;
    const own = await agentRuns.start(correlation, trace);
    this.#own = own;
    succession.observe(own);
    if (own.ending === null) storedRun?.keep(own.run_id);
    return own;
  }

  findRefusal(): Promise<EndedRun | null> {
    return this.#options.succession.findRefusal();
  }
}

/** Runs whose end has not been seen; beyond the limit, the oldest is no longer observed. */
const OBSERVED_MAX = 4_096;

/**
 * Counts the runs of one agent that were denied, failed or were cancelled, over all connections of its server. Each run
 * has a limit of denials of its own, so the operator can limit how many runs follow.
 */
export class RunSuccession {
  readonly #gateway: Pick<RunGateway, 'ending'>;
  readonly #newRunsMax: number | null;
  readonly #observed = new Set<string>();
  #ended = 0;
  #last: EndedRun | null = null;

  /** @param newRunsMax the number of runs that may follow such ends; null for any number */
  constructor(gateway: Pick<RunGateway, 'ending'>, newRunsMax: number | null) {
    this.#gateway = gateway;
    this.#newRunsMax = newRunsMax;
  }

  /** Whether an agent may open another run after a denial, a failure or a cancellation at all. */
  get isAllowed(): boolean {
    return this.#newRunsMax !== 0;
  }

  /** Observes a run of the agent. */
  observe({ run_id, ending }: OwnRun): void {
    if (this.#newRunsMax === null) return;
    if (ending === null) this.#observed.add(run_id);
    else this.#count(ending);
    const [oldest] = this.#observed;
    if (this.#observed.size > OBSERVED_MAX && oldest !== undefined) this.#observed.delete(oldest);
  }

  /** @returns the last run that counts, if no other run may follow; else null */
  async findRefusal(): Promise<EndedRun | null> {
    if (this.#newRunsMax === null) return null;
    for (const run_id of [...this.#observed]) {
      const ending = await this.#gateway.ending(run_id);
      // Another connection may have counted it meanwhile.
      if (ending !== null && this.#observed.delete(run_id)) this.#count(ending);
    }
    return this.#ended > this.#newRunsMax ? this.#last : null;
  }

  #count(ending: EndedRun): void {
    if (isContinuable(ending)) return;
    this.#ended += 1;
    this.#last = ending;
  }
}

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
