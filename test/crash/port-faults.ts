// A full or failing disk as an error of a port: at the first, the second, ... commit and head write, until a run
// completes. After the fault nothing is acknowledged and nothing starts; the next opening completes the ledger.

import { LedgerError } from '../../src/core/errors.js';
import { inHome, type CampaignOptions } from './campaign.js';
import { checkKilled, checkReopened } from './check-home.js';
import { codeOf } from './codes.js';
import { FaultPoints, nameOf, type Moment, type Point } from './fault-points.js';
import { openAt } from './ground.js';
import { append, journalOf, type Places } from './journal.js';
import { Tally } from './tally.js';
import { work, type Said } from './workload.js';

const POINTS_OF_PORTS: readonly Point[] = [
  'commit.before',
  'commit.after',
  'externalHeadStore.before',
  'externalHeadStore.after',
];
/** A store may throw the port's error, or the system's. */
const ERRORS = [
  { code: 'ENOSPC', error: (): Error => unavailable(errnoError('ENOSPC')) },
  { code: 'EIO', error: (): Error => errnoError('EIO') },
] as const;
type Failing = (typeof ERRORS)[number];
const NTH_MAX = 500;

export async function portFaults(
  options: CampaignOptions,
  points: readonly Point[] = POINTS_OF_PORTS,
  step = 1,
): Promise<Tally> {
  const tally = new Tally('port faults');
  for (const point of points) {
    for (const failing of ERRORS) {
      let nth = 1;
      while (nth < NTH_MAX && (await faulted(tally, options, { point, nth }, failing))) nth += step;
      tally.that(nth > 1, () => `no ${failing.code} at ${point}`);
    }
    options.say?.(`${point}: ${tally.cases} cases so far`);
  }
  return tally;
}

/** @returns false if the point is not passed that often */
async function faulted(tally: Tally, options: CampaignOptions, moment: Moment, failing: Failing): Promise<boolean> {
  let reached = false;
  const named = `seed ${options.seed} ${failing.code} at ${nameOf(moment)}`;
  await inHome(tally, options, named, async (places, label) => {
    const said: Said[] = [];
    let before = Infinity;
    const hooks = new FaultPoints(moment, () => {
      reached = true;
      before = said.length;
      append(places.journal, { at: 'fault', moment: nameOf(moment) });
      throw failing.error();
    });
    await worked(tally, options, places, hooks, said, label).catch((error: unknown) => {
      // An opening that meets the fault fails with it.
      if (!reached || said.length > 0) throw error;
    });
    if (reached) checkClosed(tally, places, said, before, moment, label);
    await checkKilled(tally, places, said, label);
    await checkReopened(tally, places, said, label);
  });
  return reached;
}

async function worked(
  tally: Tally,
  { seed }: CampaignOptions,
  places: Places,
  hooks: FaultPoints,
  said: Said[],
  label: string,
): Promise<void> {
  const { turnpike, close } = await openAt({ places, hooks, life: '1' });
  const say = (line: Said): void => void said.push(line);
  try {
    await work({ turnpike, places, say, seed, life: '1', attached: 2, remote: 1, steps: 7 });
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    tally.that(code === 'LEDGER_UNAVAILABLE', () => `${label}: a caller got ${code}`);
  }
  if (journalOf(places).some(({ at }) => at === 'fault')) {
    const answer = await turnpike.startAgent({ case: 'case-local' }).then(
      () => 'was started',
      (error: unknown) => codeOf(error) ?? String(error),
    );
    tally.that(answer === 'LEDGER_UNAVAILABLE', () => `${label}: after the fault an agent ${answer}`);
  }
  await close();
}

/** It has failed closed. A head write may fail while the engine continues, so a commit may come between. */
function checkClosed(
  tally: Tally,
  places: Places,
  said: readonly Said[],
  before: number,
  { point }: Moment,
  label: string,
): void {
  for (const line of said.slice(before)) tally.note(line.said === 'error' ? line.code : line.said);
  if (point.startsWith('externalHeadStore')) return;
  const journal = journalOf(places);
  const after = journal.slice(journal.findIndex(({ at }) => at === 'fault'));
  const begun = after.filter(({ at }) => at === 'begin');
  tally.that(begun.length === 0, () => `${label}: after the fault ${begun.length} effects were begun`);
  const given = said.slice(before).filter((line) => line.said === 'response' || line.said === 'started');
  tally.that(given.length === 0, () => `${label}: after the fault ${JSON.stringify(given[0])}`);
}

const errnoError = (code: string): Error => Object.assign(new Error(`${code}: injected`), { code });

const unavailable = (cause: Error): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the ledger could not be written', cause });
