// The cost of opening a ledger whose process was killed: unfinished run trees among ended ones.
// A child process of pairs.mjs, or alone:
// `node test/bench/recovery-cost.mjs --package DIR [--trees 64] [--entries 500] [--ended 10000]`
//
// A process that kills itself with SIGKILL makes the ledger once for each build; each opening uses a copy.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { payload } from './payloads.mjs';

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: '.' },
    trees: { type: 'string', default: '64' },
    entries: { type: 'string', default: '500' },
    ended: { type: 'string', default: '10000' },
    make: { type: 'string' },
  },
});
const checkout = resolve(values.package);
const { openTurnpike, winstonLog } = await import(join(checkout, 'dist/src/index.js'));
const log = winstonLog('error');

/** Leaves a home as a killed process does. Ended trees come first and in between, as in a service that ran for long. */
async function make(home) {
  const turnpike = await openTurnpike({ home, log });
  const caseDir = join(home, 'sandbox/case-local/a/b');
  mkdirSync(caseDir, { recursive: true });
  writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));
  for (let left = Number(values.ended); left > 0; left -= 100) {
    const agents = await Promise.all(Array.from({ length: 100 }, () => turnpike.startAgent({ case: 'case-local' })));
    await Promise.all(agents.map((agent) => agent.end()));
  }
  const agents = await Promise.all(
    Array.from({ length: Number(values.trees) }, () => turnpike.startAgent({ case: 'case-local' })),
  );
  for (;;) {
    await Promise.all(agents.map((agent) => agent.respond(payload('read'))));
    let length = 0;
    for await (const entry of turnpike.ledger.tree(agents[0].root_run_id)) length = entry.seq + 1;
    if (length >= Number(values.entries)) process.kill(process.pid, 'SIGKILL');
  }
}

async function open(home) {
  const start = performance.now();
  const before = process.cpuUsage();
  const turnpike = await openTurnpike({ home, log });
  const { user, system } = process.cpuUsage(before);
  const wall = performance.now() - start;
  const { recovery } = turnpike;
  await turnpike.close();
  if (recovery.interrupted !== Number(values.trees)) throw new Error(`recovered ${JSON.stringify(recovery)}`);
  return { 'recovery, processor ms': (user + system) / 1000, 'recovery, wall ms': wall };
}

if (values.make !== undefined) await make(values.make);
else {
  const { mtimeMs } = statSync(join(checkout, 'dist/src/index.js'));
  const shape = `${checkout} ${mtimeMs} ${values.trees} ${values.entries} ${values.ended}`;
  const made = join(tmpdir(), `turnpike-recovery-${hash('sha256', shape, 'hex').slice(0, 16)}`);
  if (!existsSync(made)) {
    const draft = mkdtempSync(`${made}-`);
    const self = fileURLToPath(import.meta.url);
    const { signal, stderr } = spawnSync(process.execPath, [self, ...process.argv.slice(2), '--make', draft], {
      encoding: 'utf8',
    });
    if (signal !== 'SIGKILL') throw new Error(`the ledger could not be made: ${stderr}`);
    // A socket cannot be copied.
    rmSync(join(draft, 'control.sock'), { force: true });
    renameSync(draft, made);
  }
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-recovery-cost-'));
  const home = join(folder, 'home');
  cpSync(made, home, { recursive: true });
  const cost = await open(home);
  rmSync(folder, { recursive: true, force: true });
  console.log(JSON.stringify(cost));
}
