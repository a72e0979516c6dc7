// A home on a small disk that another program fills while agents work: steps in flight are recorded, every run is
// ended, nothing new starts, and everything continues when there is space again.
//
// This module is also the program that runs inside the mount namespace.

import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { winstonLog } from '../../src/system/winston-log.js';
import { CodedError } from '../../src/core/errors.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import { openTurnpike, type Turnpike } from '../../src/host/turnpike.js';

const KIB = 1_024;
const SIZE = '32m';
const AGENTS = 4;

export interface FullDiskOptions {
  /** This module, compiled. */
  readonly program: string;
  readonly folder: string;
  /** Whether to omit the reserve, which must be found. */
  readonly planted?: boolean;
}

/** The violations, by name; otherwise empty. */
export function fullDiskFindings(options: FullDiskOptions, namespace: readonly string[]): readonly string[] {
  const argv = [process.execPath, options.program, JSON.stringify(options)];
  const { stdout, stderr, status } = spawnSync('unshare', [...namespace, ...argv], { encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as string[]) : [`the program ended with ${status}: ${stderr}`];
}

const codeOf = (error: unknown): string => (error instanceof CodedError ? (error as CodedError).code : 'OTHER');

async function inside({ folder, planted = false }: FullDiskOptions): Promise<readonly string[]> {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', disk]);
  const storage = planted ? { freeBytesMin: 1, reservedBytes: 1 } : { reservedBytes: 2_048 * KIB };
  const open = (): Promise<Turnpike> =>
    openTurnpike({ home: join(disk, 'home'), log: winstonLog('silent'), control: false, storage });
  const findings: string[] = [];
  const that = (holds: boolean, what: string): void => {
    if (!holds) findings.push(what);
  };

  const turnpike = await open();
  const agents = await Promise.all(
    Array.from({ length: AGENTS }, (_, n) => turnpike.startAgent({ case: `case-${n}`, link: 'remote' })),
  );
  that(
    (await stepsOf(agents, 3)).every((code) => code === 'SUCCESS'),
    'steps succeed while there is room',
  );
  // A step of each agent is in flight when the disk becomes full.
  const inFlight = stepsOf(agents, 1);
  fill(join(disk, 'filler'));
  that(
    (await inFlight).every((code) => code === 'SUCCESS'),
    'a running step is recorded on a full disk',
  );
  const refused = await turnpike.startAgent({ case: 'case-new' }).then(() => 'started', codeOf);
  that(refused === 'STORAGE_LOW', `a new run is refused: ${refused}`);
  const large = await agents[0]!.submit(Buffer.alloc(64 * KIB, 'x')).then(() => 'a step', codeOf);
  that(large === 'STORAGE_LOW', `large content is refused: ${large}`);
  const ended = await Promise.all(agents.slice(1).map((agent) => agent.end().then(({ state }) => state, codeOf)));
  that(
    ended.every((state) => state === 'completed'),
    `runs are ended on a full disk: ${ended.join()}`,
  );
  that(!turnpike.failed, 'the ledger has not stopped');
  that(await isWhole(turnpike), 'the ledger verifies and replays on a full disk');
  rmSync(join(disk, 'filler'));
  that(
    (await stepsOf(agents.slice(0, 1), 3)).every((code) => code === 'SUCCESS'),
    'the run goes on when there is room',
  );
  await turnpike.startAgent({ case: 'case-new' }).catch((error: unknown) => that(false, `a new run: ${codeOf(error)}`));
  // Full again when the process ends: the next one still opens.
  fill(join(disk, 'filler'));
  await turnpike.close().catch((error: unknown) => that(false, `it closes on a full disk: ${codeOf(error)}`));
  const next = await open().catch((error: unknown) => that(false, `it opens on a full disk: ${codeOf(error)}`));
  if (next === undefined) return findings;
  rmSync(join(disk, 'filler'));
  that(await isWhole(next), 'the ledger verifies and replays at the end');
  await next.close();
  return findings;
}

/** Until not one more byte fits. */
function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (let bytes = 1_024 * KIB; bytes >= 512; bytes /= 2) {
      const block = Buffer.alloc(bytes, 1);
      try {
        for (;;) writeSync(descriptor, block);
      } catch {
        // Smaller blocks may still fit.
      }
    }
  } finally {
    closeSync(descriptor);
  }
  if (statfsSync(file).bavail !== 0) throw new Error('the disk is not full');
}

let proposals = 0;

/** The outcomes of `count` thoughts of each agent, all at once. */
async function stepsOf(agents: readonly AgentRun[], count: number): Promise<readonly string[]> {
  const steps = agents.flatMap((agent) =>
    Array.from({ length: count }, async () => {
      const id = `00000000-0000-4000-8000-${String((proposals += 1)).padStart(12, '0')}`;
      const proposal = { schema_version: '1.0.0', id, reasoning: 'A thought.', action: 'THINK', args: {} };
      const response = await agent.submit(JSON.stringify(proposal));
      return 'outcome' in response ? response.outcome : response.decision;
    }),
  );
  return Promise.all(steps.map((step) => step.catch(codeOf)));
}

const isWhole = async (turnpike: Turnpike): Promise<boolean> =>
  (await turnpike.ledger.verify()).ok && (await turnpike.replay()).ok;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = JSON.parse(process.argv[2] ?? '') as FullDiskOptions;
  writeFileSync(1, JSON.stringify(await inside(options)));
}
