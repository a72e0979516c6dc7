// A disk that is really full: a home on a small file system of its own, which is made in a mount namespace and is gone
// with it. And a file that cannot grow, by the limit that the system puts on it (EFBIG).
//
// This module is also the program that runs inside the namespace.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inHome, type CampaignOptions } from './campaign.js';
import { checkKilled, checkReopened, furnish } from './check-home.js';
import { Victim, type Ended } from './children.js';
import { placesIn } from './journal.js';
import { Tally } from './tally.js';

const WORK = ['--attached', '3', '--remote', '1', '--steps', '40'];
const SIZES_KIB = [1_000, 1_100, 1_300, 1_600, 2_000, 2_600];
/** In blocks of 512 bytes. */
const LIMITS = [700, 900, 1_300, 2_000, 3_000];
const NAMESPACES = [['-m'], ['-r', '-m']];

export function fullDisk(options: CampaignOptions, sizes = SIZES_KIB): Tally {
  const tally = new Tally('full disk');
  const namespace = NAMESPACES.find((flags) => spawnSync('unshare', [...flags, 'true']).status === 0);
  if (namespace === undefined) {
    tally.note('skipped: no mount namespace here');
    return tally;
  }
  const program = options.program.replace(/victim\.js$/, 'full-disk.js');
  for (const size of sizes) {
    const argv = [process.execPath, program, JSON.stringify({ ...options, say: undefined }), String(size)];
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

/** No file of the process can become larger than so much. */
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

/** It has ended by itself, and has told everybody. */
function failedClosed(tally: Tally, { status, signal, stderr, said }: Ended, label: string): void {
  tally.that(status === 0, () => `${label}: the process ended with ${status} ${signal}: ${stderr}`);
  const failures = said.filter((line) => line.said === 'audit_failure').length;
  tally.note(failures > 0 ? 'ledger stopped' : 'ledger went on');
  tally.note('AUDIT_FAILURE', failures);
}

/** Inside the namespace: mounts, lets a victim fill the disk, makes room, opens again. */
async function inside({ folder, program, seed }: CampaignOptions, size: number): Promise<Tally> {
  const tally = new Tally('full disk');
  const label = `seed ${seed} ${size} KiB`;
  const places = placesIn(join(folder, `full-disk-${size}`));
  mkdirSync(places.home, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}k`, 'tmpfs', places.home]);
  await furnish(places);
  const ended = await new Victim(program, ['--folder', places.folder, '--seed', String(seed), ...WORK]).ended;
  failedClosed(tally, ended, label);
  await checkKilled(tally, places, ended.said, label);
  execFileSync('mount', ['-o', 'remount,size=64m', places.home]);
  await checkReopened(tally, places, ended.said, label);
  return tally;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [options, size] = process.argv.slice(2);
  const { checks, violations, notes } = await inside(JSON.parse(options ?? '') as CampaignOptions, Number(size));
  writeFileSync(1, JSON.stringify({ checks, violations, notes: [...notes] } satisfies Inside));
}
