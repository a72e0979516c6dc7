// The campaign: a service in its own process is measured while it is quiet, and then while a token attacks it. Its
// resource use and response times are measured from outside.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { diskFolder } from '../../fixtures/temp-folder.js';
import type { RedteamResult } from '../campaign-runner.js';
import { call } from './http-calls.js';
import { heldBytes, stepsBesideAnother, unreadAnswer } from './watches.js';
import { DEFAULT_LIMITS } from '../../../src/interfaces/admission/admission-limits.js';
import { ATTACKS, type Attack, type Fault, type Measured, type Served } from './protocol.js';

export interface ServiceCampaign {
  readonly seed: number;
  readonly seconds: number;
  readonly say: (line: string) => void;
  /** Entries of the ledger at the start. */
  readonly entries: number;
  /** The folder with the compiled programs of the campaign. */
  readonly programs: string;
  readonly fault?: Fault;
  /** The attacks, one after another and then all at once. Default: all. */
  readonly attacks?: readonly Attack[];
  /** The longest measurement of the quiet service. Default: 10 s. */
  readonly quietMs?: number;
  /** The limits to check. Default: `AIMS`. */
  readonly aims?: Aims;
}

/** The limits while one token attacks. */
export interface Aims {
  /** The 99th percentile of another token's step, as a multiple of the quiet one. */
  readonly slower: number;
  /** Its throughput, as a fraction of the quiet one. */
  readonly throughput: number;
  /** The 99th percentile of liveness, in milliseconds. */
  readonly livenessMs: number;
  /** Resident memory of the service, in MB. */
  readonly memoryMb: number;
  /** Bytes that the service holds of one response that its client has not read: two events of a stream at most. */
  readonly heldBytes: number;
  /** Steps of one token that run while a step of another token runs. */
  readonly bulkSteps: number;
}

export const AIMS: Aims = {
  ...{ slower: 10, throughput: 0.5, livenessMs: 100, memoryMb: 400 },
  ...{ heldBytes: 524_288, bulkSteps: DEFAULT_LIMITS.bulkSteps },
};

const RSS_INTERVAL_MS = 20;
const BYTES_PER_MB = 1_000_000;
const PAGE_BYTES = 4_096;

export async function attackService(options: ServiceCampaign): Promise<RedteamResult> {
  const folder = diskFolder('redteam');
  const service = new Child(options, 'server', { folder, entries: options.entries, fault: options.fault ?? null });
  try {
    const served = JSON.parse(await service.line()) as Served;
    return await measured(options, served, service);
  } finally {
    await service.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measured(options: ServiceCampaign, served: Served, service: Child): Promise<RedteamResult> {
  const { attacks = ATTACKS, say, seconds, quietMs = 10_000 } = options;
  const phases = attacks.length === 1 ? [attacks] : [...attacks.map((attack) => [attack]), attacks];
  const ms = Math.round((seconds * 1_000) / phases.length);
  const session = await mcpSession(served);
  const memory = new Memory(service.pid);
  // Until the code is compiled: a service that runs for hours does not pay for that.
  await clients(options, served, Math.min(ms, quietMs, 2_000));
  const quiet = await clients(options, served, Math.min(ms, quietMs));
  const base = { p99: percentile(quiet.victim.times, 0.99), rate: rateOf(quiet.victim) };
  const figures: Record<string, string | number> = {
    'quiet step, p99 in ms': round(base.p99),
    'quiet steps a second': round(base.rate),
    'quiet liveness, p99 in ms': round(percentile(quiet.probe.times, 0.99)),
    'quiet memory in MB': round(memory.take()),
  };
  const aims = options.aims ?? AIMS;
  const failures: string[] = [];
  const hold = (figure: string, value: number, limit: number): void => {
    figures[figure] = value;
    if (value > limit) failures.push(`${figure}: ${value}, and at most ${limit} is allowed`);
  };
  hold('steps of one token during a step of another', await stepsBesideAnother(served), aims.bulkSteps);
  const unread = unreadAnswer(served);
  for (const phase of phases) {
    const name = phase.length === 1 ? (phase[0] ?? '') : 'all at once';
    const attacker = new Child(options, 'attacker', {
      ...{ url: served.url, token: served.tokens.hostile, ms },
      ...{ seed: options.seed, attacks: phase },
    });
    const { victim, probe } = await clients(options, served, ms);
    await attacker.kill();
    const found = phaseFigures({ victim, probe, memory: memory.take(), base });
    for (const [figure, value] of entriesOf(found)) figures[`${name}: ${figure}`] = round(value);
    const said = failuresOf(found, aims);
    failures.push(...said.map((failure) => `${name}: ${failure}`));
    say(`${name}: ${JSON.stringify(Object.fromEntries(entriesOf(found).map(([key, value]) => [key, round(value)])))}`);
  }
  memory.stop();
  const held = await heldBytes(served, () => service.lines, aims.heldBytes);
  hold('bytes of an unread response', held, aims.heldBytes);
  unread.destroy();
  if (!(await isKnown(served, session))) failures.push('the MCP session of another token was closed');
  if (service.hasEnded) failures.push('the service has ended');
  return { figures, failures };
}

interface PhaseFigures {
  readonly 'p99 of a step, times the quiet one': number;
  readonly 'throughput, of the quiet one': number;
  readonly 'liveness, p99 in ms': number;
  readonly 'liveness, longest in ms': number;
  readonly 'memory, MB': number;
  readonly 'failed steps': number;
  readonly 'failed probes': number;
}

interface Phase {
  readonly victim: Measured;
  readonly probe: Measured;
  readonly memory: number;
  readonly base: { readonly p99: number; readonly rate: number };
}

const phaseFigures = ({ victim, probe, memory, base }: Phase): PhaseFigures => ({
  'p99 of a step, times the quiet one': percentile(victim.times, 0.99) / base.p99,
  'throughput, of the quiet one': rateOf(victim) / base.rate,
  'liveness, p99 in ms': percentile(probe.times, 0.99),
  'liveness, longest in ms': percentile(probe.times, 1),
  'memory, MB': memory,
  'failed steps': victim.failures,
  'failed probes': probe.failures,
});

function failuresOf(found: PhaseFigures, aims: Aims): readonly string[] {
  const over = (name: keyof PhaseFigures, limit: number): readonly string[] =>
    found[name] <= limit ? [] : [`${name}: ${round(found[name])}, and at most ${limit} is allowed`];
  const share = found['throughput, of the quiet one'];
  return [
    ...over('p99 of a step, times the quiet one', aims.slower),
    ...over('liveness, p99 in ms', aims.livenessMs),
    ...over('memory, MB', aims.memoryMb),
    ...over('failed steps', 0),
    ...over('failed probes', 0),
    ...(share >= aims.throughput ? [] : [`throughput: ${round(share)} of the quiet one, aim ${aims.throughput}`]),
  ];
}

const entriesOf = (found: PhaseFigures): [string, number][] => Object.entries({ ...found });

/** The victim and the probe, each in its own process, for this time. */
async function clients(
  options: ServiceCampaign,
  { url, tokens }: Served,
  ms: number,
): Promise<{ readonly victim: Measured; readonly probe: Measured }> {
  const victim = new Child(options, 'victim', { url, token: tokens.victim, ms });
  const probe = new Child(options, 'probe', { url, token: tokens.probe, ms });
  const [worked, watched] = [await victim.line(), await probe.line()];
  await Promise.all([victim.ended, probe.ended]);
  return { victim: JSON.parse(worked) as Measured, probe: JSON.parse(watched) as Measured };
}

/** An MCP session of the victim, which another token must not be able to close. */
async function mcpSession({ url, tokens }: Served): Promise<string> {
  const body = mcp('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'victim', version: '1' },
  });
  const headers = { accept: 'application/json, text/event-stream' };
  const answer = await call({ url: `${url}/mcp`, token: tokens.victim, method: 'POST', body, headers });
  return String(answer.headers['mcp-session-id']);
}

async function isKnown({ url, tokens }: Served, session: string): Promise<boolean> {
  const headers = { accept: 'application/json, text/event-stream', 'mcp-session-id': session };
  const sent = { url: `${url}/mcp`, token: tokens.victim, method: 'POST', body: mcp('ping', {}), headers };
  const answer = await call(sent).catch(() => null);
  return answer?.status === 200;
}

const mcp = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

const rateOf = ({ times, failures, ms }: Measured): number => ((times.length - failures) * 1_000) / ms;
const round = (value: number): number => Number(value.toFixed(2));

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Infinity;
}

/** The peak resident memory of a process since the last query. */
class Memory {
  readonly #pid: number;
  readonly #timer: NodeJS.Timeout;
  #largest = 0;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), RSS_INTERVAL_MS);
  }

  take(): number {
    this.#look();
    const largest = this.#largest;
    this.#largest = 0;
    return largest;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    try {
      const [, pages = '0'] = readFileSync(`/proc/${this.#pid}/statm`, 'latin1').split(' ');
      this.#largest = Math.max(this.#largest, (Number(pages) * PAGE_BYTES) / BYTES_PER_MB);
    } catch {
      // It has ended.
    }
  }
}

/** A program of the campaign in its own process. */
class Child {
  readonly ended: Promise<unknown>;
  readonly #child: ChildProcess;
  #text = '';
  #stderr = '';

  constructor({ programs }: ServiceCampaign, name: string, argument: object) {
    const args = ['--disable-warning=ExperimentalWarning', join(programs, `${name}.js`), JSON.stringify(argument)];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.#text += chunk.toString('utf8')));
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString('utf8')));
    this.ended = once(this.#child, 'close');
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** All its output until now. */
  get lines(): readonly string[] {
    return this.#text.split('\n').slice(0, -1);
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Its result line. @throws Error if it ends without one */
  async line(): Promise<string> {
    while (!this.#text.includes('\n')) {
      if (this.hasEnded) throw new Error(`a program of the campaign has ended: ${this.#stderr}`);
      await pause(5);
    }
    return this.#text.slice(0, this.#text.indexOf('\n'));
  }

  async kill(): Promise<void> {
    if (!this.hasEnded) this.#child.kill('SIGKILL');
    await this.ended;
  }
}
