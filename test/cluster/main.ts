// npm run campaign -- cluster-chaos [--seeds 20 --faults 2000 --seed N --parallel N --only KIND,KIND --planted [NAME]]
// npm run campaign -- cluster-chaos --overtaking 10000
//
// Three worker processes on one PostgreSQL, with faults of processes, networks, disk, clocks and the server. A history
// of the clients is compared with the ledger and with the effects. It prints one line for each seed, and ends with 1
// and the evidence if anything was found. Seeds that run side by side have a server each.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from '../fixtures/bundled.js';
import { runCase, type CaseReport } from './campaign.js';
import { FAULTS, type Fault } from './faults.js';
import { canCreateNamespaces } from './namespace.js';
import { runOvertaking } from './overtaking.js';
import { findPlanted, plantsNamed } from './planted.js';
import { Site } from './site.js';

const WORKER = 'build/test/cluster/worker';

const { values } = parseArgs({
  options: {
    // The short form: about a minute.
    seeds: { type: 'string', default: '1' },
    faults: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    // How many seeds, or searches for planted faults, run at the same time.
    parallel: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    // Leaves out the check that the quota of a case holds over all workers.
    'inexact-quota': { type: 'boolean', default: false },
    // Instead of a campaign: plants faults, and reports which are found.
    planted: { type: 'string' },
    // Instead of a campaign: clients of workers that do not fail send so many repeats that overtake their requests.
    overtaking: { type: 'string' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'turnpike-cluster-'));
// The server runs as another user.
chmodSync(folder, 0o711);
const say = (text: string): void => void process.stdout.write(`${text}\n`);

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

const sites: Site[] = [];
// Servers and clusters end with this process.
process.setMaxListeners(20 + 4 * Number(values.parallel));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const site of sites) site.unmount();
    process.exit(1);
  });
}
let hasFailed = true;
try {
  hasFailed = (await openSites()) && (await run());
} finally {
  for (const site of sites) await site.close();
}
if (!hasFailed) rmSync(folder, { recursive: true, force: true });
process.exitCode = hasFailed ? 1 : 0;

/** @returns whether this machine has PostgreSQL */
async function openSites(): Promise<boolean> {
  if (!canCreateNamespaces()) say('skipped: partitions, because this process may not create network namespaces');
  for (let index = 0; index < Number(values.parallel); index += 1) {
    const site = await Site.open(join(folder, `site-${index + 1}`), say);
    if (site === null) return false;
    sites.push(site);
  }
  return true;
}

/** Gives each job to the next free site. */
async function share<Job>(jobs: readonly Job[], work: (job: Job, site: Site) => Promise<void>): Promise<void> {
  const left = [...jobs];
  const workAll = async (site: Site): Promise<void> => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) await work(job, site);
  };
  await Promise.all(sites.map((site) => workAll(site)));
}

/** @returns whether anything was found */
async function runOvertakingIn(repeats: number, program: string): Promise<boolean> {
  let violations = 0;
  await share([Number(values.seed)], async (seed, site) => {
    const { server, folder: place } = site.options;
    const report = await runOvertaking({ server, folder: place, program, seed, repeats });
    violations += report.tally.violations.length;
    say(
      `${report.requests} requests with ${report.repeats} repeats, of which ${report.overtaking} overtook: ` +
        `${report.falseEnds} false ends, ${report.tally.violations.length} violations in ${report.tally.checks} checks, ` +
        `${report.seconds.toFixed(0)} s`,
    );
    for (const line of report.tally.violations.slice(0, 20)) say(`  VIOLATION  ${line}`);
  });
  return violations > 0;
}

/** @returns whether anything was found */
async function run(): Promise<boolean> {
  // In few files, because workers start often.
  await bundled(join(folder, 'program'), { [WORKER]: 'test/cluster/worker.ts' });
  const program = join(folder, 'program', `${WORKER}.js`);
  const common = { program, isQuotaExact: !values['inexact-quota'] };
  const { planted, overtaking } = values;
  if (overtaking !== undefined) return runOvertakingIn(Number(overtaking), common.program);
  if (planted !== undefined) {
    let missing = 0;
    await share(plantsNamed(planted), async (plant, site) => {
      const found = await findPlanted({ ...common, ...site.options, seed: Number(values.seed) }, plant);
      missing += Number(found === null);
      say(`${plant}: ${found ?? 'NOT FOUND'}`);
    });
    return missing > 0;
  }
  const seeds = Number(values.seeds);
  const faults = Math.ceil(Number(values.faults) / seeds);
  const only = FAULTS.filter((fault) => values.only.split(',').includes(fault));
  const kinds = only.length > 0 ? { only } : {};
  const reports: CaseReport[] = [];
  const all = Array.from({ length: seeds }, (_, index) => Number(values.seed) + index);
  await share(all, async (seed, site) => {
    const report = await runCase({ ...common, ...site.options, seed, faults, ...kinds });
    reports.push(report);
    say(lineOf(report));
    for (const line of report.tally.violations.slice(0, 10)) say(`  VIOLATION  ${line}`);
  });
  summarize(reports);
  return reports.some(({ tally }) => tally.violations.length > 0);
}
