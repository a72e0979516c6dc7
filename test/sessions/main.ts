// npm run campaign -- sessions [--sessions N] [--seed N] [--walks stdio,http]
//
// Runs random sessions, and whole sessions over MCP whose server is killed after every single call. Exit code 1: an
// invariant failed; the program prints the seed that reproduces it.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { builtCommand } from '../fixtures/build.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { faultsOf, TRANSPORTS, walk } from './mcp-walk.js';
import { completeRandomSession, runRandomSession } from './random-sessions.js';

const PROGRESS_EVERY = 500;

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    walks: { type: 'string', default: TRANSPORTS.join(',') },
  },
});
const [count, first] = [Number(values.sessions), Number(values.seed)];
const started = performance.now();
const say = (line: string): void =>
  void process.stdout.write(`${((performance.now() - started) / 1_000).toFixed(0)} s  ${line}\n`);

const seen = new Set<string>();
for (let seed = first; seed < first + count; seed += 1) {
  for (const what of runRandomSession(seed)) seen.add(what);
  completeRandomSession(seed);
  if ((seed - first + 1) % PROGRESS_EVERY === 0) say(`${seed - first + 1} random sessions`);
}
say(`${count} random sessions from seed ${first}, ${seen.size} kinds of answer, 0 violations`);

const folder = diskFolder('sessions');
try {
  const command = await builtCommand(folder);
  for (const transport of TRANSPORTS.filter((name) => values.walks.split(',').includes(name))) {
    const home = mkdtempSync(join(folder, `${transport}-`));
    const walked = await walk({ transport, command, folder: home, killBehind: () => true });
    const faults = faultsOf(walked);
    say(`over ${transport}: ${walked.calls} calls, ${walked.kills} kills, ${faults.length} violations`);
    for (const fault of faults) say(fault);
    if (faults.length > 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
