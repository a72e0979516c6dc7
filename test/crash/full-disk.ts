// A disk that is really full: a home on a small file system in its own mount namespace, which disappears with it. And a
// file that cannot grow, because of a limit of the system (EFBIG).
//
// This module is also the program that runs inside the namespace.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LedgerError } from '../../src/core/errors.js';
import { inHome, type CampaignOptions } from './campaign.js';
import { checkKilled, checkReopened, furnish } from './check-home.js';
import { Victim, type Ended } from './children.js';
import { unharmed } from './fault-points.js';
import { openAt } from './ground.js';
import { placesIn, type Places } from './journal.js';
import { mountNamespace } from './mount-namespace.js';
import { Tally } from './tally.js';
import { work, type Said } from './workload.js';

const WORK = ['--attached', '3', '--remote', '1', '--steps', '40'];
const SIZES_KIB = [1_000, 1_100, 1_300, 1_600, 2_000, 2_600];
/** In blocks of 512 bytes. */
const LIMITS = [700, 900, 1_300, 2_000, 3_000];

/** Whether the process that filled the disk ends and the home is opened again, or restarts when there is space. */
export type Then = 'reopened' | 'restarted';

export function fullDisk(options: CampaignOptions, sizes = SIZES_KIB, then: Then = 'reopened'): Tally {
  const tally = new Tally(`full disk, ${then}`);
  const namespace = mountNamespace();
  if (namespace === null) {
    tally.note('skipped: no mount namespace here');
    return tally;
  }
  const program = options.program.replace(/victim\.js$/, 'full-disk.js');
  for (const size of sizes) {
    const argv = [process.execPath, program, JSON.stringify({ ...options, say: undefined }), String(size), then];
    const { stdout, stderr, status } = spawnSync('unshare', [...namespace, ...argv], { encoding: 'utf8' });
    tally.cases += 1;
    tally.that(status === 0, () => `${size} KiB: the case ended with ${status}: ${stderr}`);
    if (status !== 0) continue;
    const { checks, violations, notes } = JSON.parse(stdout) as Inside;
    tally.checks += checks;
    tally.violations.push(...violations);
    for (const [name, value] of notes) tally.note(name, value);
  }
  return tally;
}

interface Inside {
  readonly checks: number;
  readonly violations: readonly string[];
  readonly notes: readonly (readonly [string, number])[];
}

/** No file of the process can become larger than this. */
export async function limitedFiles(options: CampaignOptions, limits = LIMITS): Promise<Tally> {
  const tally = new Tally('limited files');
  for (const limit of limits) {
    await inHome(tally, options, `seed ${options.seed} ${limit} blocks`, async (places, label) => {
      const argv = ['--folder', places.folder, '--seed', String(options.seed), ...WORK];
      const ended = await new Victim(options.program, argv, `ulimit -f ${limit};`).ended;
      failedClosed(tally, ended, label);
      await checkKilled(tally, places, ended.said, label);
      await checkReopened(tally, places, ended.said, label);
    });
  }
  return tally;
}

/** It has ended by itself, and has reported that to all callers. */
function failedClosed(tally: Tally, { status, signal, stderr, said }: Ended, label: string): void {
  tally.that(status === 0, () => `${label}: the process ended with ${status} ${signal}: ${stderr}`);
  const failures = said.filter((line) => line.said === 'audit_failure').length;
  tally.note(failures > 0 ? 'ledger stopped' : 'ledger went on');
  tally.note('AUDIT_FAILURE', failures);
}

/** Inside the namespace: mounts, fills the disk, frees space, and checks the result. */
async function inside(options: CampaignOptions, size: number, then: string): Promise<Tally> {
  const tally = new Tally('full disk');
  const label = `seed ${options.seed} ${size} KiB`;
  const places = placesIn(join(options.folder, `full-disk-${then}-${size}`));
  mkdirSync(places.home, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}k`, 'tmpfs', places.home]);
  await furnish(places);
  if (then === 'restarted') await restarted(tally, options, places, label);
  else await reopened(tally, options, places, label);
  return tally;
}

const makeRoom = ({ home }: Places): void => void execFileSync('mount', ['-o', 'remount,size=64m', home]);

async function reopened(
  tally: Tally,
  { program, seed }: CampaignOptions,
  places: Places,
  label: string,
): Promise<void> {
  const ended = await new Victim(program, ['--folder', places.folder, '--seed', String(seed), ...WORK]).ended;
  failedClosed(tally, ended, label);
  await checkKilled(tally, places, ended.said, label);
  makeRoom(places);
  await checkReopened(tally, places, ended.said, label);
}

/** This process fills the disk itself, and continues with the same Turnpike. */
async function restarted(tally: Tally, { seed }: CampaignOptions, places: Places, label: string): Promise<void> {
  const said: Said[] = [];
  const { turnpike, close } = await openAt({ places, hooks: unharmed, life: '1' });
  const hasFailed = (): boolean => turnpike.failed;
  const task = { turnpike, places, say: (line: Said) => void said.push(line), seed };
  await work({ ...task, life: '1', attached: 3, remote: 1, steps: 40 });
  tally.note(hasFailed() ? 'ledger stopped' : 'ledger went on');
  tally.note('AUDIT_FAILURE', said.filter((line) => line.said === 'audit_failure').length);
  if (hasFailed()) {
    const early = await turnpike.restart().then(String, (error: unknown) => (error as LedgerError).code);
    tally.note(`a restart without room: ${early}`);
    await checkKilled(tally, places, said, `${label}, full`);
    makeRoom(places);
    const { settled, interrupted, damaged } = await turnpike.restart();
    tally.that(!hasFailed() && damaged === 0, () => `${label}: it has restarted, and ${damaged} trees are damaged`);
    tally.note('settled', settled);
    tally.note('interrupted', interrupted);
  }
  const before = said.length;
  await work({ ...task, life: '2', attached: 2, remote: 1, steps: 20 });
  const failures = said.slice(before).filter((line) => line.said === 'audit_failure').length;
  const responses = said.slice(before).filter((line) => line.said === 'response').length;
  tally.that(
    failures === 0 && responses > 0,
    () => `${label}: ${failures} failures, ${responses} responses afterwards`,
  );
  await close();
  await checkKilled(tally, places, said, `${label}, closed`);
  await checkReopened(tally, places, said, label);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [options, size, then] = process.argv.slice(2);
  const given = JSON.parse(options ?? '') as CampaignOptions;
  const { checks, violations, notes } = await inside(given, Number(size), then ?? '');
  writeFileSync(1, JSON.stringify({ checks, violations, notes: [...notes] } satisfies Inside));
}
