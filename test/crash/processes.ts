// Several processes on one home (D13). A second process is locked out while the first one lives, even stopped. A writer
// that has lost its lock while it was stopped, because an operator removed the file, notices it when it continues.
import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { homePaths } from '../../src/home/home.js';
import { inHome, type CampaignOptions } from './campaign.js';
import { checkKilled, checkReopened } from './check-home.js';
import { Victim } from './children.js';
import { codeOf } from './codes.js';
import { nameOf, unharmed, type Moment } from './fault-points.js';
import { openAt } from './ground.js';
import { journalOf, type Places } from './journal.js';
import { Tally } from './tally.js';
import type { Said } from './workload.js';

const WORK = ['--attached', '2', '--remote', '1', '--steps', '10'];

/** The second process is refused while the first lives, and admitted after that was killed. */
export async function twoProcesses(options: CampaignOptions, cases = 3): Promise<Tally> {
  const tally = new Tally('two processes');
  for (let number = 1; number <= cases; number += 1) {
    await inHome(tally, options, `seed ${options.seed}`, async (places, label) => {
      const argv = ['--folder', places.folder, '--seed', String(options.seed + number), ...WORK, '--hold'];
      const first = new Victim(options.program, argv);
      await first.lines(2 + number * 5);
      const second = await new Victim(options.program, [...argv, '--life', '2', '--open-only']).ended;
      const code = second.said.map((line) => (line.said === 'refused' ? line.code : '')).join('');
      tally.that(code === 'LEDGER_LOCKED', () => `${label}: the second process got ${JSON.stringify(second)}`);
      first.kill();
      const { said } = await first.ended;
      await checkKilled(tally, places, said, label);
      await checkReopened(tally, places, said, label);
    });
  }
  return tally;
}

/** Where a writer is stopped. At the first two it has nothing in flight outside of the database. */
const STOPS: readonly Moment[] = [
  { point: 'commit.before', nth: 3 },
  { point: 'commit.before', nth: 6 },
  { point: 'commit.before', nth: 9 },
  { point: 'externalHeadStore.before', nth: 4 },
  { point: 'effect.before', nth: 3 },
];

export async function stoppedWriter(
  options: CampaignOptions,
  stops = STOPS,
  undisturbed: readonly number[] = [4, 9],
): Promise<Tally> {
  const tally = new Tally('stopped writer');
  for (const moment of stops) {
    await inHome(tally, options, `seed ${options.seed} stopped at ${nameOf(moment)}`, (places, label) =>
      losesItsLock(tally, options, places, label, moment),
    );
  }
  for (const lines of undisturbed) {
    await inHome(tally, options, `seed ${options.seed} stopped after ${lines} lines`, (places, label) =>
      keepsItsLock(tally, options, places, label, lines),
    );
  }
  return tally;
}

/** Stopped for a while and not disturbed: no other process gets in, and it continues as if nothing had happened. */
async function keepsItsLock(
  tally: Tally,
  { program, seed }: CampaignOptions,
  places: Places,
  label: string,
  lines: number,
): Promise<void> {
  const victim = new Victim(program, ['--folder', places.folder, '--seed', String(seed), ...WORK]);
  await victim.lines(lines);
  victim.kill('SIGSTOP');
  if (await victim.stopped()) {
    await refused(tally, places, label);
    await pause(200);
    victim.kill('SIGCONT');
  }
  const { said, status, stderr } = await victim.ended;
  tally.that(status === 0, () => `${label}: it ended with ${status}: ${stderr}`);
  const failed = said.filter((line) => line.said === 'audit_failure').length;
  tally.that(failed === 0, () => `${label}: ${failed} steps were not recorded`);
  await checkKilled(tally, places, said, label);
  await checkReopened(tally, places, said, label);
}

async function losesItsLock(
  tally: Tally,
  { program, seed }: CampaignOptions,
  places: Places,
  label: string,
  moment: Moment,
): Promise<void> {
  const argv = ['--folder', places.folder, '--seed', String(seed), ...WORK, '--stop-at', nameOf(moment)];
  const victim = new Victim(program, argv);
  const isStopped = await victim.stopped();
  tally.that(isStopped, () => `${label}: it was never stopped`);
  await refused(tally, places, label);
  // What an operator must not do.
  rmSync(`${homePaths(places.home).ledger}.lock`);
  await pause(20);
  const before = [...victim.said];
  await checkReopened(tally, places, before, label);
  victim.kill('SIGCONT');
  const { said, status, stderr } = await victim.ended;
  tally.that(status === 0, () => `${label}: it ended with ${status}: ${stderr}`);
  checkWoken(tally, places, said.slice(before.length), label, moment);
  await checkKilled(tally, places, said, label);
  // The settlement of an effect that started later said that it had not happened: that could not be known.
  if (moment.point === 'commit.before') await checkReopened(tally, places, said, label);
}

/** It notices the loss at its next commit, acknowledges nothing and starts nothing more. */
function checkWoken(tally: Tally, places: Places, said: readonly Said[], label: string, { point }: Moment): void {
  const journal = journalOf(places);
  const woken = journal.slice(journal.findIndex(({ at }) => at === 'fault'));
  const codes = woken.flatMap((line) => (line.at === 'commit failed' ? [line.code] : []));
  tally.that(
    codes.join() === 'LEDGER_CONFLICT',
    () => `${label}: its commits failed with ${codes.join() || 'nothing'}`,
  );
  const begun = woken.filter(({ at }) => at === 'begin').length;
  // If it was right before an effect, or had just committed the intents of some, those are executed.
  const excused = point !== 'commit.before';
  tally.that(begun === 0 || excused, () => `${label}: it began ${begun} effects after it had woken`);
  if (excused) tally.note(`effects after ${point}`, begun);
  const given = said.filter((line) => line.said === 'response' && !line.again);
  tally.that(given.length === 0 || excused, () => `${label}: woken, it acknowledged ${JSON.stringify(given[0])}`);
  tally.note('AUDIT_FAILURE', said.filter((line) => line.said === 'audit_failure').length);
}

async function refused(tally: Tally, places: Places, label: string): Promise<void> {
  const answer = await openAt({ places, hooks: unharmed, life: '9' }).then(
    ({ close }) => close().then(() => 'it was opened'),
    (error: unknown) => codeOf(error) ?? String(error),
  );
  tally.that(answer === 'LEDGER_LOCKED', () => `${label}: while the writer lives: ${answer}`);
}
