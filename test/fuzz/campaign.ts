// The campaign over `step`. It runs payloads in chunks, each chunk through its own Turnpike with many concurrent
// callers. Then it compares all responses with everything that was recorded.

import { readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { OUTCOMES, type Outcome } from '../../src/core/contract/run/phase.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { feed, VIOLATIONS_MAX, type RunLog, type Talk } from './caller.js';
import { behaviourOf, problemsOfResponse, problemsOfTraces, type Secrets } from './checks.js';
import { findHangs } from './hang.js';
import { fixtures, ROOT } from './places.js';
import { PayloadSource } from './source.js';
import { CASES, POLICY_NAMES, World, type Open, type Opened, type PolicyName, type Store } from './world.js';

/** All inputs of a chunk besides its seed, so that the chunk can be run again alone. */
export interface Chunk {
  readonly policy: PolicyName;
  readonly store: Store;
  readonly payloads: readonly Uint8Array[];
  /** Every payload goes to one caller, or each payload to the first few, in this order. */
  readonly to: 'one' | 'all';
}

/** The first few callers cover all differences between callers. */
const FEW = 8;

export interface Violation {
  readonly what: string;
  readonly chunk: Chunk;
  readonly payload: Uint8Array;
}

export interface Report {
  payloads: number;
  runs: number;
  /** Refused because the run had ended, and submitted to another run. */
  late: number;
  traces: number;
  readonly outcomes: Record<Outcome, number>;
  behaviours: number;
  /** The slowest step that was measured alone; null if nothing is measured. */
  slowestMs: number | null;
  readonly violations: Violation[];
}

export interface CampaignOptions {
  readonly seed: number;
  readonly payloads: number;
  readonly corpus: readonly Uint8Array[];
  readonly chunkSize?: number;
  /** Every n-th chunk has its ledger in SQLite, the others in memory. */
  readonly sqliteEvery?: number;
  /** Every n-th ledger in memory is verified and replayed; one in SQLite always is. Default: each. */
  readonly proveEvery?: number;
  /** Whether a step that takes more than 50 ms alone is a violation. */
  readonly measure?: boolean;
  readonly open?: Open;
  /** Called before a chunk, so that the running chunk is known if the process dies. */
  readonly before?: (chunk: Chunk) => void;
  readonly after?: (report: Readonly<Report>) => void;
}

/** Runs a campaign; stops early only after too many violations. */
export async function fuzzSteps(options: CampaignOptions): Promise<Report> {
  const { seed, corpus, payloads, chunkSize = 2_500, sqliteEvery = 8 } = options;
  const source = new PayloadSource(seed, corpus);
  const report = newReport();
  for (let number = 0; report.payloads < payloads && report.violations.length < VIOLATIONS_MAX; number += 1) {
    const chunk: Chunk = {
      policy: POLICY_NAMES[number % POLICY_NAMES.length]!,
      store: number % sqliteEvery === sqliteEvery - 1 ? 'sqlite' : 'memory',
      payloads: source.chunk(Math.min(chunkSize, payloads - report.payloads)),
      to: 'one',
    };
    const proven = chunk.store === 'sqlite' || number % (options.proveEvery ?? 1) === 0;
    await runChunk(chunk, { ...options, proven }, report, (behaviour, payload) => source.learn(behaviour, payload));
    report.behaviours = source.behaviours;
    options.after?.(report);
  }
  return report;
}

/** Runs one given chunk: the fixtures, or one that showed a violation before. */
export async function fuzzChunk(
  chunk: Chunk,
  options: Pick<CampaignOptions, 'measure' | 'open'> = {},
): Promise<Report> {
  const report = newReport();
  const behaviours = new Set<string>();
  await runChunk(chunk, { ...options, proven: true }, report, (behaviour) => void behaviours.add(behaviour));
  report.behaviours = behaviours.size;
  return report;
}

/** Every fixture, for several callers, under every policy: some failures need a sequence of payloads. */
export const fixtureChunks = (): readonly Chunk[] => {
  const payloads = fixtures('payloads').map(({ bytes }) => bytes);
  return POLICY_NAMES.map((policy) => ({ policy, store: 'memory', payloads, to: 'all' }));
};

const newReport = (): Report => ({
  payloads: 0,
  runs: 0,
  late: 0,
  traces: 0,
  outcomes: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>,
  behaviours: 0,
  slowestMs: null,
  violations: [],
});

type Learn = (behaviour: string, payload: Uint8Array) => void;
interface Running extends Pick<CampaignOptions, 'measure' | 'open' | 'before'> {
  /** Whether verification and replay are part of it. */
  readonly proven: boolean;
}

async function runChunk(chunk: Chunk, options: Running, report: Report, learn: Learn): Promise<void> {
  options.before?.(chunk);
  const world = new World(chunk.policy, options.open);
  const violate = (what: string, payload: Uint8Array = new Uint8Array()): void =>
    void report.violations.push({ what, chunk, payload });
  try {
    const turnpike = await world.open(chunk.store);
    const talks = await Promise.all(sharesOf(chunk).map((share, caller) => feed(turnpike, caller, share)));
    for (const { violations } of talks) for (const { what, payload } of violations) violate(what, payload);
    const traces = await judge({ turnpike, world, talks, report, violate, learn });
    if (options.proven) await prove(turnpike, traces, violate);
    await turnpike.close();
    if (options.measure === true) {
      const sent = talks.flatMap(({ runs }) => runs.flatMap((run) => run.sent));
      const { slowestMs, hangs } = await findHangs(world, sent);
      report.slowestMs = Math.max(report.slowestMs ?? 0, slowestMs);
      for (const { payload, ms } of hangs) violate(`a step took ${ms.toFixed(1)} ms, by itself, at best`, payload);
    }
  } catch (error) {
    violate(`the chunk broke: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  } finally {
    world.remove();
  }
}

/** The payloads of each caller. */
function sharesOf({ payloads, to }: Chunk): readonly (readonly Uint8Array[])[] {
  if (to === 'all') return Array.from({ length: FEW }, () => payloads);
  return Array.from({ length: CASES }, (_, caller) => payloads.filter((_payload, at) => at % CASES === caller));
}

interface Judged {
  readonly turnpike: Opened;
  readonly world: World;
  readonly talks: readonly Talk[];
  readonly report: Report;
  readonly violate: (what: string, payload?: Uint8Array) => void;
  readonly learn: Learn;
}

/** Compares responses with traces. @returns the number of traces */
async function judge({ turnpike, world, talks, report, violate, learn }: Judged): Promise<number> {
  const written = await tracesOf(turnpike);
  const all = [...written.values()].flat();
  const rules = all.flatMap(({ rule_id }) => (rule_id === null ? [] : [rule_id]));
  const secrets = secretsOf(world, rules);
  for (const run of talks.flatMap(({ runs }) => runs)) {
    const traces = written.get(run.run_id) ?? [];
    judgeRun(run, traces, secrets, violate);
    traces.forEach((trace, at) => {
      const sent = run.sent[at];
      report.outcomes[trace.outcome] += 1;
      if (sent !== undefined) learn(behaviourOf(world.policy, trace), sent.payload);
    });
    report.payloads += run.sent.length;
    report.runs += 1;
    written.delete(run.run_id);
  }
  report.traces += all.length;
  for (const talk of talks) report.late += talk.late;
  for (const run_id of written.keys()) violate(`there are traces of ${run_id}, which no caller has used`);
  return all.length;
}

/**
 * Verifies the ledger and replays it through the machines, which must produce the same response for each trace (D6).
 */
async function prove(turnpike: Opened, traces: number, violate: Judged['violate']): Promise<void> {
  if (!(await turnpike.ledger.verify()).ok) violate('the ledger does not verify');
  const { ok, steps, responses } = await turnpike.replay();
  if (!ok) violate('the ledger does not replay');
  if (steps !== traces || responses !== traces) {
    violate(`the replay has ${steps} steps and ${responses} responses, the ledger ${traces} traces`);
  }
}

function judgeRun(run: RunLog, traces: readonly StepTrace[], secrets: Secrets, violate: Judged['violate']): void {
  for (const sent of run.sent) for (const what of problemsOfResponse(sent, secrets)) violate(what, sent.payload);
  for (const { at, what } of problemsOfTraces(run.sent, traces)) violate(what, run.sent[at]?.payload);
}

async function tracesOf(turnpike: Opened): Promise<Map<string, StepTrace[]>> {
  const traces = new Map<string, StepTrace[]>();
  for await (const { type, text } of turnpike.ledger.log()) {
    if (type !== 'step_trace') continue;
    const { body } = JSON.parse(text) as { body: StepTrace };
    const list = traces.get(body.run_id);
    if (list === undefined) traces.set(body.run_id, [body]);
    else list.push(body);
  }
  return traces;
}

/** Texts that occur in paths of this host, and the names of all rules: the documented ones and those just seen. */
function secretsOf(world: World, met: readonly string[]): Secrets {
  const places = [world.folder, tmpdir(), process.cwd(), homedir(), ROOT].filter((place) => place.length > 1);
  const words = ['/proc/', '/sys/', 'node_modules', 'ledger.db', '.turnpike-', 'at Object.'];
  return { anywhere: world.secrets, inOwnWords: [...new Set([...places, ...words, ...RULES, ...met])] };
}

/** Rules as docs/errors.md names them; for a rule with a placeholder, the part before it. */
const RULES: readonly string[] = ['lane-rules', 'step-rules'].flatMap((table) => {
  const text = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');
  const [, after = ''] = text.split(`<!-- table: ${table} -->\n`);
  const [rows = ''] = after.split('\n\n');
  return [...rows.matchAll(/^\| `?([a-z_]+\.[a-z_.]+)/gm)].map(([, rule = '']) => rule);
});
