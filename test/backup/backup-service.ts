// A service with 64 callers that never stop, in a process of its own. Its argument is the home. For each line on stdin
// it prints how many steps it has acknowledged, and the latencies since the last line.

import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { openWorker } from '../../src/interfaces/cli/store/open-worker.js';
import { findSharedHome } from '../../src/interfaces/cli/store/shared-home.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { locateHome } from '../../src/home/store-home.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { randomUUID } from 'node:crypto';

const CALLERS = 64;
const CASES = 8;
const STEPS_PER_RUN = 24;
/** Between two steps of a caller: the ledger of a campaign must stay small enough to be verified each time. */
const PAUSE_MS = 600;

const paths = locateHome(process.argv[2] ?? '');
const shared = findSharedHome(paths, { values: { store: undefined, heads: undefined } });
const options = { contract: shippedContract(), log: winstonLog('error') };
const turnpike =
  shared === null ? await openTurnpike({ ...options, home: paths.home }) : (await openWorker(shared, options)).turnpike;

let acknowledged = 0;
let latencies: number[] = [];

const proposalOf = (step: number, caller: number): object =>
  step % 3 === 0
    ? {
        action: 'WRITE_FILE',
        args: { path: `/sandbox/${caller}.md`, content: `step ${step} of ${caller}\n`.repeat(20) },
      }
    : step % 3 === 1
      ? { action: 'READ_FILE', args: { path: `/sandbox/${caller}.md` } }
      : { action: 'THINK', args: {} };

async function call(caller: number): Promise<void> {
  for (;;) {
    const agent = await turnpike.startAgent({ case: `case-${caller % CASES}`, actor: `agent-${caller}` });
    for (let step = 0; step < STEPS_PER_RUN; step += 1) {
      const head = { schema_version: '1.0.0', id: randomUUID(), reasoning: 'To be remembered.' };
      const before = performance.now();
      await agent.submit(JSON.stringify({ ...head, ...proposalOf(step, caller) }));
      latencies.push(performance.now() - before);
      acknowledged += 1;
      await delay(PAUSE_MS * (0.5 + Math.random()));
    }
    await agent.end();
  }
}

const fail = (error: unknown): void => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? '') : String(error)}\n`);
  process.exit(1);
};
for (let caller = 0; caller < CALLERS; caller += 1) call(caller).catch(fail);

for await (const line of createInterface(process.stdin)) {
  const sorted = latencies.sort((one, other) => one - other);
  const at = (part: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
  const report = { line, acknowledged, steps: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  latencies = [];
}
