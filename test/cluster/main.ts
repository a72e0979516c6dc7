// npm run cluster:chaos [-- --seeds 20 --faults 2000 --seed N --only KIND,KIND --planted [NAME]]
//
// Three worker processes on one PostgreSQL, with faults of processes, networks, disk, clocks and the server. A history
// of the clients is compared with the ledger and with the effects. It prints one line for each seed, and ends with 1
// and the evidence if anything was found.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startPostgres, type Postgres } from '../fixtures/postgres.js';
import { runCase, type CaseReport } from './campaign.js';
import { FAULTS, type Fault } from './faults.js';
import { findPlanted } from './planted.js';

/** The size of the file system of the server, in MiB: little more than it needs. */
const DISK_MIB = 400;

const { values } = parseArgs({
  options: {
    // The short form: about a minute.
    seeds: { type: 'string', default: '1' },
    faults: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    // Leaves out the check that the quota of a case holds over all workers.
    'inexact-quota': { type: 'boolean', default: false },
    // Instead of a campaign: plants faults, and reports which are found.
    planted: { type: 'string' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'turnpike-cluster-'));
// The server runs as another user.
chmodSync(folder, 0o711);
const disk = join(folder, 'disk');
const isMounted = mountDisk();
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** A file system of limited size, if this process may mount one. */
function mountDisk(): boolean {
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    process.stdout.write('skipped: full disks, because this process may not mount a file system\n');
    return false;
  }
}

const settings = ['max_wal_size=64MB', 'min_wal_size=32MB', 'max_connections=60', 'shared_buffers=32MB'];
const server = await startPostgres({ isDurable: true, folder: disk, settings });

function lineOf({ seed, tally, faults, operations, slowestMs, seconds }: CaseReport): string {
  const count = [...faults.values()].reduce((sum, each) => sum + each, 0);
  const { notes } = tally;
  return [
    `seed ${seed}: ${tally.violations.length} violations`,
    `${count} faults`,
    `${operations.ok} ok`,
    `${operations.unknown} unknown`,
    `${notes.get('entries') ?? 0} entries`,
    `${notes.get('effects') ?? 0} effects`,
    `${notes.get('settlements') ?? 0} settled`,
    `slowest ${Math.round(slowestMs)} ms`,
    `${seconds.toFixed(0)} s`,
  ].join(', ');
}

function summarize(reports: readonly CaseReport[]): void {
  const faults = new Map<Fault, number>();
  const notes = new Map<string, number>();
  for (const report of reports) {
    for (const [fault, count] of report.faults) faults.set(fault, (faults.get(fault) ?? 0) + count);
    for (const [name, count] of report.tally.notes) {
      const before = notes.get(name) ?? 0;
      notes.set(name, name.startsWith('most') ? Math.max(before, count) : before + count);
    }
  }
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
  const sum = (values_: readonly number[]): number => values_.reduce((total, each) => total + each, 0);
  const found = reports.flatMap(({ seed, tally }) => tally.violations.map((line) => `seed ${seed}: ${line}`));
  say(`faults: ${list(faults)}`);
  say(`ledger: ${list(notes)}`);
  say(
    `${found.length} violations in ${reports.length} seeds: ${sum([...faults.values()])} faults, ` +
      `${sum(reports.map(({ operations }) => operations.ok))} answered and ` +
      `${sum(reports.map(({ operations }) => operations.unknown))} unknown requests, ` +
      `${sum(reports.map(({ tally }) => tally.checks))} checks`,
  );
  for (const line of found.slice(0, 40)) say(`VIOLATION  ${line}`);
  for (const { evidence } of reports) if (evidence !== null) say(`evidence: ${evidence}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    if (isMounted) execFileSync('umount', ['-l', disk]);
    process.exit(1);
  });
}
let hasFailed = true;
try {
  hasFailed = server !== null && (await run(server));
} finally {
  await server?.stop();
  if (isMounted) execFileSync('umount', ['-l', disk]);
}
if (!hasFailed) rmSync(folder, { recursive: true, force: true });
process.exitCode = hasFailed ? 1 : 0;

/** @returns whether anything was found */
async function run(server: Postgres): Promise<boolean> {
  const program = fileURLToPath(new URL('./worker.js', import.meta.url));
  const common = {
    server,
    program,
    smallDisk: isMounted ? disk : null,
    folder,
    isQuotaExact: !values['inexact-quota'],
  };
  if (values.planted !== undefined) {
    return !(await findPlanted({ ...common, seed: Number(values.seed) }, values.planted, say));
  }
  const seeds = Number(values.seeds);
  const only = FAULTS.filter((fault) => values.only.split(',').includes(fault));
  const reports: CaseReport[] = [];
  for (let index = 0; index < seeds; index += 1) {
    const faults = Math.ceil(Number(values.faults) / seeds);
    const seed = Number(values.seed) + index;
    const report = await runCase({ ...common, seed, faults, ...(only.length > 0 ? { only } : {}) });
    reports.push(report);
    say(lineOf(report));
    for (const line of report.tally.violations.slice(0, 10)) say(`  VIOLATION  ${line}`);
  }
  summarize(reports);
  return reports.some(({ tally }) => tally.violations.length > 0);
}
