// An agent that submits only rejected payloads, next to one that works. The home must grow by less than the budget of
// the hostile agent's actor, and the other agent must continue.
//   node build/test/redteam/storage.js [--seed N] [--seconds N] [--budget BYTES] [--home FOLDER]

import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { winstonLog } from '../../src/system/winston-log.js';
import { CodedError } from '../../src/core/errors.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import type { StorageOptions } from '../../src/runtime/storage/storage-guard.js';
import { openTurnpike, type Turnpike } from '../../src/host/turnpike.js';
import { Random } from '../simulation/random.js';

export interface StorageCampaign {
  readonly seed: number;
  readonly seconds: number;
  /** Of the hostile agent's actor. */
  readonly actorBytes: number;
  readonly folder: string;
  /** A planted fault that would let it exceed the budget. */
  readonly planted?: 'no budget';
}

export interface StorageReport {
  /** Rejected payloads that became steps, and their submitted bytes. */
  readonly sent: number;
  readonly sentBytes: number;
  readonly runs: number;
  /** Refusals without a step, by their code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** The size of the home after closing, without the reserve, compared with that after opening. */
  readonly grewBytes: number;
  /** The part of the other agent, with the allowance of the budgets for what the database adds. */
  readonly otherBytes: number;
  /** Steps of the other case, and how many of them succeeded. */
  readonly steps: number;
  readonly succeeded: number;
}

const MIB = 2 ** 20;
const SIZES = [0, 1, 1_000, 65_535, 65_537, MIB, 4 * MIB, 16 * MIB];
const IN_FLIGHT = 4;
const STEPS_OF_ONE = 50;

export async function storageCampaign(campaign: StorageCampaign): Promise<StorageReport> {
  const { folder, actorBytes, planted } = campaign;
  const home = join(folder, 'home');
  const storage: StorageOptions = planted === 'no budget' ? {} : { actorBytes };
  const turnpike = await openTurnpike({ home, log: winstonLog('silent'), control: false, storage });
  const before = bytesBelow(home);
  const hostile = new Hostile(turnpike, campaign);
  const until = Date.now() + campaign.seconds * 1_000;
  const working = work(turnpike, until);
  await hostile.floodUntil(until);
  const { steps, succeeded, trees } = await working;
  const otherBytes = await recordedOf(turnpike, trees);
  await turnpike.close();
  const { sent, sentBytes, runs, refusals } = hostile;
  return { sent, sentBytes, runs, refusals, grewBytes: bytesBelow(home) - before, otherBytes, steps, succeeded };
}

class Hostile {
  sent = 0;
  sentBytes = 0;
  runs = 0;
  readonly refusals = new Map<string, number>();
  readonly #turnpike: Turnpike;
  readonly #random: Random;
  readonly #payloads: readonly Buffer[];

  constructor(turnpike: Turnpike, { seed }: StorageCampaign) {
    this.#turnpike = turnpike;
    this.#random = new Random(`storage/${seed}`);
    this.#payloads = SIZES.map((size) => Buffer.alloc(size, 'x'));
  }

  async floodUntil(until: number): Promise<void> {
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => this.#flood(until)));
  }

  async #flood(until: number): Promise<void> {
    let run: AgentRun | null = null;
    while (Date.now() < until) {
      try {
        run ??= await this.#start();
        const payload = this.#payload();
        await run.submit(payload);
        this.sent += 1;
        this.sentBytes += payload.byteLength;
      } catch (error) {
        const code = error instanceof CodedError ? (error as CodedError).code : 'UNFORESEEN';
        this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
        if (code === 'RUN_ENDED') run = null;
        // Refused at once: others must have their turn.
        else await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }

  #start(): Promise<AgentRun> {
    this.runs += 1;
    return this.#turnpike.startAgent({ case: 'case-hostile', actor: 'hostile-agent' });
  }

  /** Never the same: equal content is stored only once. */
  #payload(): Buffer {
    const payload = Buffer.from(this.#random.pick(this.#payloads));
    for (let at = 0; at < Math.min(64, payload.byteLength); at += 1) payload[at] = this.#random.below(256);
    return payload;
  }
}

interface Worked {
  readonly steps: number;
  readonly succeeded: number;
  readonly trees: ReadonlySet<string>;
}

/** Agents of another case, which do nothing wrong: each has its own actor, and so its own budget. */
async function work(turnpike: Turnpike, until: number): Promise<Worked> {
  const trees = new Set<string>();
  let [steps, succeeded] = [0, 0];
  while (Date.now() < until) {
    const agent = await turnpike.startAgent({ case: 'case-other', actor: `working-agent-${trees.size}` });
    trees.add(agent.root_run_id);
    for (let step = 0; step < STEPS_OF_ONE && Date.now() < until; step += 1) {
      const id = `00000000-0000-4000-8000-${String(steps).padStart(12, '0')}`;
      const args = { path: '/sandbox/note.txt', content: `step ${steps}\n` };
      const proposal = { schema_version: '1.0.0', id, reasoning: 'A note.', action: 'WRITE_FILE', args };
      const response = await agent.submit(JSON.stringify(proposal));
      steps += 1;
      if ('outcome' in response && response.outcome === 'SUCCESS') succeeded += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await agent.end();
  }
  return { steps, succeeded, trees };
}

async function recordedOf({ ledger }: Turnpike, trees: ReadonlySet<string>): Promise<number> {
  let bytes = 0;
  for await (const entry of ledger.log()) if (trees.has(entry.tree_id)) bytes += entry.text.length + 96;
  return Math.ceil(bytes * 1.5);
}

/** The reserve existed before anything was recorded. */
function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'ledger.reserve')
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

/** The violations in the report; otherwise empty. */
export function findingsIn(report: StorageReport, { actorBytes }: StorageCampaign): readonly string[] {
  const { otherBytes, steps, succeeded, sent } = report;
  const grewBytes = report.grewBytes - otherBytes;
  return [
    ...(sent > 0 ? [] : ['nothing was sent']),
    ...(grewBytes < actorBytes ? [] : [`the home grew by ${grewBytes} bytes; the budget is ${actorBytes}`]),
    ...(steps > 0 && succeeded === steps ? [] : [`of ${steps} steps of the other case, ${succeeded} succeeded`]),
    ...(report.refusals.has('UNFORESEEN') ? ['a call was rejected with an error of no class of ours'] : []),
  ];
}

const USAGE = 'usage: storage.js [--seed N] [--seconds N] [--budget BYTES] [--home FOLDER]\n';

async function main(argv: readonly string[]): Promise<number> {
  const string = { type: 'string' } as const;
  const options = { seed: string, seconds: string, budget: string, home: string };
  const { values } = parseArgs({ args: [...argv], options });
  const [seed, seconds, actorBytes] = [values.seed ?? 1, values.seconds ?? 600, values.budget ?? 64 * MIB].map(Number);
  if (![seed, seconds, actorBytes].every((value) => Number.isSafeInteger(value))) {
    process.stdout.write(USAGE);
    return 2;
  }
  const folder = values.home ?? mkdtempSync(join(tmpdir(), 'turnpike-storage-'));
  const campaign = { seed: seed ?? 1, seconds: seconds ?? 600, actorBytes: actorBytes ?? MIB, folder };
  const report = await storageCampaign(campaign);
  if (values.home === undefined) rmSync(folder, { recursive: true, force: true });
  const findings = findingsIn(report, campaign);
  const summary = { ...report, refusals: Object.fromEntries(report.refusals), findings };
  process.stdout.write(`${JSON.stringify({ seed, seconds, actorBytes, ...summary })}\n`);
  return findings.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
