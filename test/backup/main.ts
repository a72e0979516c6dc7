// npm run campaign -- backups [--kills 100 --seed N --store sqlite,postgresql]
//
// Backups of a ledger under 64 callers, killed at random points (campaign.ts). Ends with 1 and the violations.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createHome } from '../../src/home/home.js';
import { startPostgres } from '../fixtures/postgres.js';
import { runBackups } from './campaign.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string', default: 'sqlite,postgresql' },
  },
});

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turnpike-backups-'));
// The server runs as another user.
chmodSync(folder, 0o711);

/** A linear congruential generator: the same seed kills at the same fractions of a backup. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

let found = 0;
for (const store of values.store.split(',')) {
  const server = store === 'sqlite' ? null : await startPostgres({ isDurable: true });
  if (store !== 'sqlite' && server === null) continue;
  const at = join(folder, store);
  const newHome = async (name: string): Promise<string> => {
    const home = join(at, name);
    if (server === null) return (await createHome(home)).home;
    const url = ['--store', server.url, '--schema', name.replace('-', '_')];
    // `init` also creates a contract folder there.
    const cwd = join(folder, `init-${name}`);
    mkdirSync(cwd);
    execFileSync(process.execPath, [program('../../src/interfaces/cli/main.js'), 'init', '--home', home, ...url], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return home;
  };
  const begun = Date.now();
  const { violations, slowest, ...tally } = await runBackups({
    folder: at,
    service: program('./backup-service.js'),
    victim: program('./backup-victim.js'),
    kills: Number(values.kills),
    killsPerLedger: 8,
    newHome,
    random: randomFrom(Number(values.seed)),
    say: (line) => void process.stderr.write(`${line}\n`),
  });
  await server?.stop();
  const seconds = Math.round((Date.now() - begun) / 1_000);
  for (const violation of violations) process.stdout.write(`${store}: ${violation}\n`);
  const counts = Object.entries(tally).map(([name, count]) => `${count} ${name}`);
  process.stdout.write(`${store}: ${violations.length} violations, ${counts.join(', ')}, ${seconds} s\n`);
  process.stdout.write(`${store}: slowest step ${slowest.with} ms with a backup, ${slowest.without} ms without\n`);
  found += violations.length;
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = found === 0 ? 0 : 1;
