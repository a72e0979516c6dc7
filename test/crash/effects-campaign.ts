// Counted effects (D8, D9, C35): one process for every point at which it may die while its agent has effects, and one
// for every point at which the recovering process may die again. The points are all those that an undisturbed process
// passes.

import { cpSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inHome, type CampaignOptions } from './campaign.js';
import { Victim } from './children.js';
import { checkKilledEffects, checkReopenedEffects } from './effects-check.js';
import { furnishService, type Play } from './effects-service.js';
import type { EffectsSaid } from './effects-victim.js';
import { placesIn, type Places } from './journal.js';
import { Tally } from './tally.js';

/** Number of concurrent processes: the campaign is designed for two cores. */
const WORKERS = 2;

/** Kills the agent's process at every point. */
export async function everyEffect(
  options: CampaignOptions,
  { brief = false }: Pick<Play, 'brief'> = {},
): Promise<Tally> {
  const tally = new Tally('every effect');
  const argv = brief ? ['--brief'] : [];
  const moments = await momentsOf(tally, options, brief);
  await sideBySide(moments, (moment) =>
    inServiceHome(tally, options, moment, async (places, label) => {
      await die(tally, options, places, label, [...argv, '--kill-at', moment]);
      await checkKilledEffects(tally, places, label);
      await checkReopenedEffects(tally, places, label, { brief });
    }),
  );
  for (const moment of moments) tally.note(moment.split(':', 1)[0] ?? '');
  options.say?.(`${moments.length} boundaries: ${tally.violations.length} violations`);
  return tally;
}

/** Kills the agent's process, and then the recovering process at every point of the recovery. */
export async function everyEffectRecovery(
  options: CampaignOptions,
  isDue: (moment: string) => boolean = () => true,
): Promise<Tally> {
  const tally = new Tally('recoveries of effects');
  const moments = (await momentsOf(tally, options, false)).filter(isDue);
  await sideBySide(moments, (moment) =>
    inServiceHome(tally, options, moment, async (places, label) => {
      await die(tally, options, places, label, ['--kill-at', moment]);
      await dieRecovering(tally, options, places, label);
      options.say?.(`${moment}: ${tally.violations.length} violations`);
    }),
  );
  return tally;
}

/** The same dead home, copied for each point of its recovery. */
async function dieRecovering(tally: Tally, options: CampaignOptions, places: Places, label: string): Promise<void> {
  const recovering = ['--open-only', '--life', '2'];
  const said = await live(tally, options, copyOf(places), label, recovering);
  const pending = said.some((line) => line.said === 'opened' && line.settled > 0);
  if (pending) tally.note('with a pending effect');
  for (const moment of pending ? passedIn(said) : []) {
    const copy = copyOf(places);
    const again = `${label}, recovering ${moment}`;
    await die(tally, options, copy, again, [...recovering, '--kill-at', moment]);
    tally.note('killed recovering');
    await checkKilledEffects(tally, copy, again);
    await checkReopenedEffects(tally, copy, again);
  }
  rmSync(copyFolder(places), { recursive: true, force: true });
}

const copyFolder = ({ folder }: Places): string => `${folder}-copy`;

function copyOf(places: Places): Places {
  const copy = copyFolder(places);
  rmSync(copy, { recursive: true, force: true });
  cpSync(places.folder, copy, { recursive: true });
  return placesIn(copy);
}

/** Every point that an undisturbed process passes; it must have run each of its effects once. */
async function momentsOf(tally: Tally, options: CampaignOptions, brief: boolean): Promise<readonly string[]> {
  let moments: readonly string[] = [];
  await inServiceHome(tally, options, 'undisturbed', async (places, label) => {
    moments = passedIn(await live(tally, options, places, label, brief ? ['--brief'] : []));
    await checkReopenedEffects(tally, places, label, { brief });
  });
  tally.that(moments.length > 0, () => 'the undisturbed process has passed nothing');
  return moments;
}

const passedIn = (said: readonly EffectsSaid[]): readonly string[] =>
  said.flatMap((line) => (line.said === 'passed' ? line.moments : []));

async function live(
  tally: Tally,
  options: CampaignOptions,
  places: Places,
  label: string,
  argv: readonly string[],
): Promise<readonly EffectsSaid[]> {
  const { said, status, stderr } = await victim(options, places, argv).ended;
  tally.that(status === 0, () => `${label}: the process ended with ${status}: ${stderr}`);
  return said as readonly unknown[] as readonly EffectsSaid[];
}

/** The process must have been killed: a point that is not reached would prove nothing. */
export async function die(
  tally: Tally,
  options: CampaignOptions,
  places: Places,
  label: string,
  argv: readonly string[],
): Promise<void> {
  const { status, signal, stderr } = await victim(options, places, argv).ended;
  tally.that(signal === 'SIGKILL', () => `${label}: the process was not killed: ${status} ${signal} ${stderr}`);
  tally.note('kills');
}

const victim = ({ program }: CampaignOptions, { folder }: Places, argv: readonly string[]): Victim =>
  new Victim(join(dirname(program), 'effects-victim.js'), ['--folder', folder, ...argv]);

export const inServiceHome = (
  tally: Tally,
  options: CampaignOptions,
  label: string,
  act: (places: Places, label: string) => Promise<void>,
): Promise<void> =>
  inHome(tally, options, label, async (places, whole) => {
    furnishService(places);
    await act(places, whole);
  });

async function sideBySide<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let item = next.next(); item.done !== true; item = next.next()) await work(item.value);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
}
