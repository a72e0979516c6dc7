// A ledger of a given length: one tree with a tenth of its entries, many short ones that end, and some that live to the
// end.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const ENTRIES_A_READ = 9;
const CALLERS = 64;
/** For a tree that ends: 6 entries at the start, 2 at the end, and these. */
const STEPS_A_TREE = 20;

/** Creates it in a new home below `folder`. @returns the home */
export async function longLedger(folder, entries) {
  const contract = patientContract(join(folder, 'contract'));
  const home = join(folder, 'home');
  const turnpike = await openTurnpike({ home, contract, log: winstonLog('error'), control: false });
  const place = join(home, 'sandbox/case-local/a/b');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'note.txt'), 'n'.repeat(1024));
  const steps = Math.ceil(entries / ENTRIES_A_READ);
  let left = steps;
  const long = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
  const longSteps = async () => {
    for (let step = 0; step < steps / 10; step += 1, left -= 1) await long.respond(payload('read'));
  };
  const short = async (caller) => {
    // Every eighth caller keeps one run to the end: its tree lives as long as the ledger.
    const stays = caller % 8 === 0;
    for (let agent = null; left > 0;) {
      agent ??= await turnpike.startAgent({ case: 'case-local', ...(stays ? { link: 'remote' } : {}) });
      for (let step = 0; step < STEPS_A_TREE && left > 0; step += 1, left -= 1) await agent.respond(payload('read'));
      if (stays) continue;
      await agent.end();
      agent = null;
    }
  };
  await Promise.all([longSteps(), ...Array.from({ length: CALLERS }, (_, caller) => short(caller))]);
  await turnpike.close();
  return home;
}
