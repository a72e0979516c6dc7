// The kills: one process for every point at which it may die, and many more at points that a seed chooses.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { checkKilled, checkReopened, prepare } from './check-home.js';
import { Victim, type Ended } from './children.js';
import { openAt } from './ground.js';
import { nameOf, POINTS, type Moment, type Point, unharmed } from './fault-points.js';
import type { Places } from './journal.js';
import { below, pick, seeded } from './seeded.js';
import { Tally } from './tally.js';
import { work, type Said } from './workload.js';

export interface CampaignOptions {
  /** The folder of the homes; homes with a finding are kept. */
  readonly folder: string;
  /** The compiled victim. */
  readonly program: string;
  readonly seed: number;
  /** Reports progress. */
  readonly say?: (line: string) => void;
}

/** A fixed, small workload: two attached agents and a remote one. */
const FIXED = ['--attached', '2', '--remote', '1', '--steps', '7'];
/** No workload here passes a point this often. */
const NTH_MAX = 500;

/** Kills the fixed workload at the `nth` pass of each point, for every n until it ends by itself. */
export async function everyBoundary(
  options: CampaignOptions,
  points: readonly Point[] = POINTS.filter((point) => !point.startsWith('settle')),
  step = 1,
): Promise<Tally> {
  const tally = new Tally('every boundary');
  for (const point of points) {
    let boundaries = 0;
    for (let nth = 1; nth < NTH_MAX; nth += step) {
      if (!(await killedAt(tally, options, { point, nth }))) break;
      boundaries += 1;
    }
    tally.that(boundaries > 0, () => `no process was killed at ${point}`);
    tally.note(point, boundaries);
    options.say?.(`${point}: ${boundaries} boundaries`);
  }
  return tally;
}

/** @returns false if the point is not passed that often */
async function killedAt(tally: Tally, options: CampaignOptions, moment: Moment): Promise<boolean> {
  const { seed, program } = options;
  let reached = false;
  await inHome(tally, options, `seed ${seed} ${nameOf(moment)}`, async (places, label) => {
    const argv = ['--folder', places.folder, '--seed', String(seed), ...FIXED, '--kill-at', nameOf(moment)];
    const { said: printed, signal, ...rest } = await new Victim(program, argv).ended;
    const said = [...printed];
    reached = signal === 'SIGKILL';
    const ended = reached || rest.status === 0;
    tally.that(ended, () => `${label}: the victim ended with ${rest.status} ${signal}: ${rest.stderr}`);
    await checkKilled(tally, places, said, label);
    if (reached) said.push(...(await nextLife(places, seed)));
    await checkReopened(tally, places, said, label);
  });
  return reached;
}

/** A complete life after the kill, in this process, in which clients request the answers that they have lost. */
async function nextLife(places: Places, seed: number): Promise<readonly Said[]> {
  const said: Said[] = [];
  const { turnpike, close } = await openAt({ places, hooks: unharmed, life: '2' });
  const say = (line: Said): void => void said.push(line);
  await work({ turnpike, places, say, seed, life: '2', attached: 0, remote: 1, steps: 2 });
  await close();
  return said;
}

/** How a process dies during recovery, and how often it may before it must complete. */
const RECOVERIES: readonly (readonly [Point, number])[] = [
  ['settle.before', 1],
  ['settle.after', 1],
  ['commit.before', 1],
  ['commit.after', NTH_MAX],
  ['externalHeadStore.after', NTH_MAX],
];

/** Kills a process at work, and then the recovering processes at every point of the recovery, on one home. */
export async function everyRecovery(
  options: CampaignOptions,
  moments: readonly Moment[] = WORKS.flatMap((point) => [1, 4, 9].map((nth) => ({ point, nth }))),
): Promise<Tally> {
  const tally = new Tally('recoveries of recoveries');
  for (const moment of moments) {
    await inHome(tally, options, `seed ${options.seed} ${nameOf(moment)}, recovering`, async (places, label) => {
      const argv = ['--folder', places.folder, '--seed', String(options.seed), ...FIXED];
      const said = [...(await new Victim(options.program, [...argv, '--kill-at', nameOf(moment)]).ended).said];
      for (const [point, times] of RECOVERIES) {
        for (let time = 1; time <= times; time += 1) {
          const life = `${point.replace('.', '')}${time}`;
          const recovering = ['--open-only', '--life', life, '--kill-at', `${point}:1`];
          const ended = await new Victim(options.program, [...argv, ...recovering]).ended;
          said.push(...ended.said);
          await checkKilled(tally, places, said, label);
          if (ended.signal !== 'SIGKILL') break;
          tally.note('killed recovering');
        }
      }
      await checkReopened(tally, places, said, label);
    });
  }
  return tally;
}

const WORKS: readonly Point[] = ['commit.after', 'effect.before', 'effect.mid', 'effect.performed', 'effect.after'];

/** Kills from outside, several per home, so that recovering processes are killed as well. */
export async function randomKills(options: CampaignOptions, kills: number, perHome = 10): Promise<Tally> {
  const tally = new Tally('random kills');
  const homes = Math.ceil(kills / perHome);
  for (let home = 1; home <= homes; home += 1) {
    const count = Math.min(perHome, kills - (home - 1) * perHome);
    const seed = options.seed * 10_007 + home;
    await inHome(tally, options, `seed ${options.seed} home ${home}`, (places, label) =>
      killedOften(tally, { ...options, seed }, places, label, count),
    );
    options.say?.(`home ${home} of ${homes}: ${tally.violations.length} violations`);
  }
  return tally;
}

async function killedOften(
  tally: Tally,
  { program, seed }: CampaignOptions,
  places: Places,
  label: string,
  kills: number,
): Promise<void> {
  const random = seeded(seed);
  const said: Said[] = [];
  for (let killed = 0, life = 1; killed < kills; life += 1) {
    const argv = ['--folder', places.folder, '--seed', String(seed + life), '--life', String(life)];
    const sizes = ['--attached', '3', '--remote', String(below(random, 3)), '--steps', '14'];
    const victim = new Victim(program, [...argv, ...sizes]);
    const lines = pick(random, [1, 1, 2, 3 + below(random, 12), 3 + below(random, 50), 3 + below(random, 50)]);
    const ms = below(random, lines === 1 ? 60 : 12);
    await victim.lines(lines);
    await pause(ms);
    victim.kill();
    const ended = await victim.ended;
    said.push(...ended.said);
    if (ended.signal === 'SIGKILL') killed += 1;
    else expectWell(tally, ended, label);
    tally.note(ended.signal === 'SIGKILL' ? killedWhile(ended) : 'ended before the kill');
    await checkKilled(tally, places, said, `${label} life ${life}`);
    // Not every time, so that recoveries are killed and recovered as well.
    if (random() < 0.4 || killed === kills) await checkReopened(tally, places, said, `${label} after life ${life}`);
  }
  tally.note('responses', said.filter((line) => line.said === 'response').length);
}

const killedWhile = ({ said }: Ended): string =>
  said.some((line) => line.said === 'opened') ? 'killed at work' : 'killed at opening';

function expectWell(tally: Tally, { status, signal, stderr, said }: Ended, label: string): void {
  const well = status === 0 && said.some((line) => line.said === 'opened');
  tally.that(
    well,
    () => `${label}: a process ended with ${status} ${signal}: ${stderr} ${JSON.stringify(said.at(-1))}`,
  );
  for (const line of said) if (line.said === 'lag') tally.most('head file behind by entries', line.entries);
}

/** One case in its own home, which is kept if the case has a finding. */
export async function inHome(
  tally: Tally,
  { folder }: Pick<CampaignOptions, 'folder'>,
  label: string,
  act: (places: Places, label: string) => Promise<void>,
): Promise<void> {
  const found = tally.violations.length;
  tally.cases += 1;
  mkdirSync(folder, { recursive: true });
  const own = join(folder, `${tally.part.replaceAll(' ', '-')}-${tally.cases}`);
  const places = await prepare(own);
  try {
    await act(places, `${label} (${own})`);
  } catch (error) {
    tally.violations.push(
      `${label} (${own}): ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }
  if (tally.violations.length === found) rmSync(own, { recursive: true, force: true });
}
