// The clients of a case: agents that work on trees, behind two front ends. A front end routes by a plain hash of the
// tree over the workers that it believes to be live, and goes on to the next one if there is no answer.

import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { StepResponse } from '../../src/core/contract/run/response.js';
import { proposalOf } from '../crash/script.js';
import { below, pick } from '../crash/seeded.js';
import type { Worker } from './cluster.js';
import { TOOLS } from './contract.js';
import type { History, Operation } from './history.js';
import { machineTime } from './places.js';

/** How long a front end waits for a worker, in ms. */
const ANSWER_MS = 4_000;
/** For so long a front end does not use a worker that has not answered, in ms. */
const AVOID_MS = 1_000;
/** How often a client sends a request before it gives up. */
const SENDS_MAX = 25;
/** How many operations an agent sends to one tree. */
const OPERATIONS_MAX = 30;
const FRONT_ENDS = 2;
/** One of so many trees is the first of its case. */
const NEW_CASE = 3;
/** One of so many tool calls is slow: its deed comes when its worker may be over, after this time, in ms. */
const SLOW = 30;
const SLOW_MS = 14_000;
/** How many requests an agent of a contested tree sends at once. */
const CONTESTED = 6;
/** A path in a case that all agents of the case fill. */
const LARGE_BYTES = 2_000;

export interface ClientOptions {
  readonly workers: readonly Worker[];
  readonly random: () => number;
  readonly agents: number;
  /** Distinguishes the ids of this case from those of others. */
  readonly seed: number;
  readonly cases: readonly string[];
  /** Whether most requests of a tree reach different workers at the same time. */
  readonly isContested: boolean;
  /** Whether many tool calls are slow. */
  readonly isSlow: boolean;
}

class FrontEnd {
  readonly #workers: readonly Worker[];
  /** Until when a worker is not used. */
  readonly #avoided = new Map<Worker, number>();

  constructor(workers: readonly Worker[]) {
    this.#workers = workers;
  }

  /** The worker for a key, after `tries` workers that did not answer. */
  #route(key: string, tries: number): Worker | undefined {
    const now = machineTime();
    const live = this.#workers.filter((worker) => (this.#avoided.get(worker) ?? 0) <= now);
    const from = live.length > 0 ? live : this.#workers;
    return from[(createHash('sha256').update(key).digest().readUInt32BE() + tries) % from.length];
  }

  async send(
    path: string,
    key: string,
    body: object,
    tries: number,
  ): Promise<Readonly<Record<string, unknown>> | null> {
    const worker = this.#route(key, tries);
    const answer = await worker?.ask(path, body, ANSWER_MS);
    if (answer?.isOk === true) return answer.body;
    if (worker !== undefined && answer === null) this.#avoided.set(worker, machineTime() + AVOID_MS);
    if (answer === null || answer === undefined) return null;
    return answer.body['code'] === 'RUN_ENDED' || answer.body['code'] === 'RUN_UNKNOWN' ? answer.body : null;
  }
}

export class Clients {
  readonly history: History = { operations: [], runs: [], answered: 0, slowestMs: 0 };
  readonly #options: ClientOptions;
  readonly #frontEnds: readonly FrontEnd[];
  #isOver = false;
  #names = 0;
  #working: Promise<unknown> = Promise.resolve();

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#frontEnds = Array.from({ length: FRONT_ENDS }, () => new FrontEnd(options.workers));
  }

  start(): void {
    const agents = Array.from({ length: this.#options.agents }, () => this.#work());
    this.#working = Promise.all(agents);
  }

  /** Sends no new request, and waits for the answers of the others. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  #hasStopped(): boolean {
    return this.#isOver;
  }

  /** One agent: opens a tree, works on it, and opens the next one. */
  async #work(): Promise<void> {
    const { random, cases, isContested } = this.#options;
    while (!this.#isOver) {
      const isNew = below(random, NEW_CASE) === 0;
      const case_id = isNew ? `case-new-${(this.#names += 1)}` : pick(random, cases);
      // Several workers may be the first to store content of a new case.
      const opened = await Promise.all(Array.from({ length: isNew ? 3 : 1 }, () => this.#open(case_id)));
      const [run_id, ...others] = opened.filter((each) => each !== null);
      if (run_id === undefined) continue;
      let hasEnded = isNew && !(await this.#useAtOnce([run_id, ...others], case_id));
      for (let count = 0; count < OPERATIONS_MAX && !hasEnded && !this.#hasStopped(); count += 1) {
        // Sometimes two at once, which may reach two workers.
        const asked = isContested ? CONTESTED : below(random, 5) === 0 ? 2 : 1;
        const going = await Promise.all(Array.from({ length: asked }, () => this.#operate(run_id, case_id)));
        hasEnded = going.includes(false);
      }
    }
  }

  /** @returns whether the first run goes on */
  async #useAtOnce(runs: readonly string[], case_id: string): Promise<boolean> {
    const going = await Promise.all(runs.map((run) => this.#operate(run, case_id)));
    return going[0] === true;
  }

  async #open(case_id: string): Promise<string | null> {
    const frontEnd = pick(this.#options.random, this.#frontEnds);
    const answer = await frontEnd.send('/start', `${case_id} ${(this.#names += 1)}`, { case: case_id }, 0);
    const run_id = answer?.['run_id'];
    if (typeof run_id === 'string') {
      this.history.runs.push({ run_id, case_id });
      return run_id;
    }
    await pause(100);
    return null;
  }

  /** @returns whether the run goes on */
  async #operate(run_id: string, case_id: string): Promise<boolean> {
    const operation = this.#draw(run_id, case_id);
    this.history.operations.push(operation);
    const frontEnd = pick(this.#options.random, this.#frontEnds);
    // Some requests reach another worker than those before.
    const { random, isContested } = this.#options;
    const shift = isContested || below(random, 4) === 0 ? below(random, 3) : 0;
    const body = { run_id, payload: operation.payload, input_id: operation.input_id };
    let goesOn = true;
    for (let tries = 0; tries < SENDS_MAX && operation.outcome === 'unknown' && goesOn; tries += 1) {
      operation.sends += 1;
      const answer = await frontEnd.send('/propose', run_id, body, tries + shift);
      if (answer === null) await pause(50 + 30 * tries);
      else if (typeof answer['text'] === 'string') this.#receive(operation, answer['text']);
      else {
        goesOn = false;
        operation.hasRunEnded = answer['code'] === 'RUN_ENDED';
      }
    }
    operation.answeredAt = machineTime();
    this.history.slowestMs = Math.max(this.history.slowestMs, operation.answeredAt - operation.invokedAt);
    return goesOn;
  }

  /** D2: a response that is not in the ledger says so. */
  #receive(operation: Operation, text: string): void {
    const { error } = JSON.parse(text) as Partial<Extract<StepResponse, { error: unknown }>>;
    if (error?.error_code === 'AUDIT_FAILURE') return;
    operation.outcome = 'ok';
    this.history.answered += 1;
    operation.response = text;
  }

  #draw(run_id: string, case_id: string): Operation {
    const { seed } = this.#options;
    const what = `s${seed}-${(this.#names += 1)}`;
    const [kind, action, args] = this.#request(what, run_id, case_id);
    const payload = proposalOf(what, action, args);
    const { id } = JSON.parse(payload) as { readonly id: string };
    const path = kind === 'create' || kind === 'replace' ? String(args['path']).slice('/sandbox/'.length) : null;
    const content = typeof args['content'] === 'string' ? args['content'] : what;
    const place = { run_id, input_id: what, proposal_id: id, payload, case_id };
    const known = { answeredAt: 0, outcome: 'unknown', response: null, sends: 0, hasRunEnded: false } as const;
    return { ...place, kind, path, what: content, invokedAt: machineTime(), ...known };
  }

  #request(
    what: string,
    run_id: string,
    case_id: string,
  ): readonly [Operation['kind'], string, Readonly<Record<string, unknown>>] {
    const { random } = this.#options;
    const tree = run_id.replace(/[^a-zA-Z0-9]/gu, '').slice(-10);
    const { isSlow: hasSlowCalls } = this.#options;
    // A slow call that can be queried: it has not happened yet when another worker settles it.
    const drawn = hasSlowCalls ? 9 : below(random, 10);
    if (drawn < 1) return ['think', 'THINK', {}];
    if (drawn < 3) return ['read', 'READ_FILE', { path: `/sandbox/${tree}.txt` }];
    const filler = case_id.endsWith('quota') ? '.'.repeat(LARGE_BYTES) : '';
    if (drawn < 6) return ['create', 'WRITE_FILE', { path: `/sandbox/${what}.txt`, content: `${what}${filler}` }];
    if (drawn < 7) return ['replace', 'WRITE_FILE', { path: `/sandbox/${tree}.txt`, content: what }];
    const isSlow = below(random, hasSlowCalls ? 2 : SLOW) === 0;
    const ms = isSlow ? SLOW_MS : pick(random, [0, 5, 40, 300]);
    const tool = hasSlowCalls ? 'bank.transfer' : pick(random, TOOLS);
    return ['tool', 'CALL_TOOL', { tool, input: { what, ms } }];
  }
}
