// Requests that overtake one another: three worker processes behind a plain round robin, and clients that repeat a
// request under its id before the answer of its first copy has come. Every copy must get the one recorded response.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { openPostgresStore } from '../../src/stores/postgres/index.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { factsOf } from '../crash/ledger-facts.js';
import { proposalOf } from '../crash/script.js';
import { below, pick, seeded } from '../crash/seeded.js';
import { Tally } from '../crash/tally.js';
import { Cluster, execute } from './cluster.js';
import type { CaseOptions } from './campaign.js';
import { TOOL_CALLS_MAX, TOOLS } from './contract.js';
import { deedsOf } from './places.js';

/** How long a client waits for an answer, in ms: no worker fails here, so every answer comes. */
const ANSWER_MS = 60_000;
const AGENTS = 12;
/** A repeat is sent up to so much later than the copy before it, in ms. */
const REPEATED_AFTER_MS = 30;

/** How often, and after how long, a client repeats a request that no ledger has, in ms. */
const TRIES_MAX = 20;
const PAUSE_MS = 500;

/** D2: a response that is not in the ledger says so. */
const isUnrecorded = ({ code, text }: Readonly<Record<string, unknown>>): boolean =>
  code === 'LEDGER_UNAVAILABLE' || (typeof text === 'string' && text.includes('"AUDIT_FAILURE"'));

export interface OvertakingOptions extends Pick<CaseOptions, 'server' | 'program' | 'folder' | 'seed'> {
  /** How many repeats the clients send. */
  readonly repeats: number;
}

export interface OvertakingReport {
  readonly tally: Tally;
  readonly requests: number;
  readonly repeats: number;
  /** Repeats that were sent before the first copy had its answer. */
  readonly overtaking: number;
  /** Answers that said that a run had ended, and the run goes on. */
  readonly falseEnds: number;
  readonly seconds: number;
}

interface Request {
  readonly run_id: string;
  readonly what: string;
  readonly proposal_id: string;
  readonly isTool: boolean;
  readonly answers: string[];
  hasAnswer: boolean;
}

class Overtaking {
  readonly #cluster: Cluster;
  readonly #options: OvertakingOptions;
  readonly #random: () => number;
  readonly requests: Request[] = [];
  readonly problems: string[] = [];
  repeats = 0;
  overtaking = 0;
  falseEnds = 0;
  #next = 0;

  constructor(cluster: Cluster, options: OvertakingOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#random = seeded(options.seed);
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: AGENTS }, () => this.#work()));
  }

  /** The front end: each request goes to the next worker. */
  async #send(path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const { workers } = this.#cluster;
    this.#next += 1;
    const answer = await workers[this.#next % workers.length]?.ask(path, body, ANSWER_MS);
    return answer?.body ?? { code: 'no answer' };
  }

  async #work(): Promise<void> {
    while (this.repeats < this.#options.repeats) {
      const { run_id } = await this.#send('/start', { case: `case-${below(this.#random, 4)}` });
      if (typeof run_id !== 'string') throw new Error('no run was started');
      for (let count = 0; count < TOOL_CALLS_MAX && this.repeats < this.#options.repeats; count += 1)
        await this.#request(run_id);
    }
  }

  async #request(run_id: string): Promise<void> {
    const what = `o${this.requests.length}`;
    const isTool = below(this.#random, 4) > 0;
    const input = { what, ms: pick(this.#random, [0, 5, 40, 200]) };
    const payload = isTool
      ? proposalOf(what, 'CALL_TOOL', { tool: pick(this.#random, TOOLS), input })
      : proposalOf(what, 'THINK', {});
    const { id } = JSON.parse(payload) as { readonly id: string };
    const request: Request = { run_id, what, proposal_id: id, isTool, answers: [], hasAnswer: false };
    this.requests.push(request);
    const body = { run_id, payload, input_id: what };
    const copies = [this.#copy(request, body)];
    for (let repeats = 2; repeats > 0; repeats -= 1) {
      await pause(below(this.#random, REPEATED_AFTER_MS));
      this.repeats += 1;
      this.overtaking += Number(!request.hasAnswer);
      copies.push(this.#copy(request, body));
    }
    await Promise.all(copies);
  }

  async #copy(request: Request, body: object): Promise<void> {
    let answer = await this.#send('/propose', body);
    // A worker that got no processor time for long has lost its session: it joins again, and the client repeats.
    for (let tries = 0; tries < TRIES_MAX && isUnrecorded(answer); tries += 1) {
      await pause(PAUSE_MS);
      answer = await this.#send('/propose', body);
    }
    request.hasAnswer = true;
    if (typeof answer['text'] === 'string') request.answers.push(answer['text']);
    else this.problems.push(`${request.what} of ${request.run_id} got ${String(answer['code'])}`);
    // No run of this campaign ends.
    if (answer['code'] === 'RUN_ENDED') this.falseEnds += 1;
  }
}

export async function runOvertaking(options: OvertakingOptions): Promise<OvertakingReport> {
  const startedAt = Date.now();
  const { server, program, seed } = options;
  const schema = `overtaking_${process.pid}_${seed}`;
  const folder = join(options.folder, `overtaking-${seed}`);
  const tally = new Tally(`seed ${seed}`);
  const cluster = await Cluster.start({ server, program, folder, schema, plant: 'none' });
  const clients = new Overtaking(cluster, options);
  try {
    await clients.run();
    for (const problem of clients.problems) tally.that(false, () => problem);
    await check(tally, cluster, clients.requests, { url: server.url, schema });
  } finally {
    await cluster.stop();
  }
  if (tally.violations.length === 0) {
    rmSync(folder, { recursive: true, force: true });
    await execute(server.url, 'public', `DROP SCHEMA ${schema} CASCADE`);
  }
  const { requests, repeats, overtaking, falseEnds } = clients;
  const seconds = (Date.now() - startedAt) / 1_000;
  return { tally, requests: requests.length, repeats, overtaking, falseEnds, seconds };
}

/** Every copy got the recorded response, every step is recorded once, and every tool has acted once for it. */
async function check(
  tally: Tally,
  { places }: Cluster,
  requests: readonly Request[],
  { url, schema }: { readonly url: string; readonly schema: string },
): Promise<void> {
  const caseKeysDir = `${places.keys}/case-keys`;
  const store = await openPostgresStore({ url, schema, caseKeysDir, readOnly: true });
  try {
    const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
    const verified = await reader.verify();
    tally.that(verified.ok, () => `verify: ${JSON.stringify(verified)}`);
    const { traces } = await factsOf(reader);
    const responses = new Map<string, string[]>();
    for (const { proposal_id, response_sha256 } of traces)
      responses.set(String(proposal_id), [...(responses.get(String(proposal_id)) ?? []), response_sha256]);
    const deeds = new Map<string, number>();
    for (const { what } of deedsOf(places)) deeds.set(what, (deeds.get(what) ?? 0) + 1);
    for (const { what, proposal_id, isTool, answers } of requests) {
      const recorded = responses.get(proposal_id) ?? [];
      tally.that(recorded.length === 1, () => `${what} is recorded ${recorded.length} times`);
      const hashes = new Set(answers.map((answer) => sha256(answer)));
      tally.that(
        [...hashes].every((hash) => hash === recorded[0]),
        () => `${what} got another response`,
      );
      tally.that((deeds.get(what) ?? 0) === Number(isTool), () => `${what} happened ${deeds.get(what) ?? 0} times`);
    }
  } finally {
    await store.close();
  }
}
