// Every byte of the head file, damaged in every way: it returns one of the two heads that were written, or is reported
// as damaged, and never anything else (D15, H1 of head-file.ts).

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerError } from '../../src/core/errors.js';
import { checkExternalHead } from '../../src/core/ledger/verification/check-external-head.js';
import { homePaths, openHead, openHome } from '../../src/home/home.js';
import type { CampaignOptions } from './campaign.js';
import { everyByte, type Damage } from './damage.js';
import { Tally } from './tally.js';
import { baseOf, type Base } from './torn.js';

export async function tornHead(options: CampaignOptions, step = 1): Promise<Tally> {
  const tally = new Tally('torn head file');
  const base = await baseOf(options, 'head', [], true);
  const whole = base.files['ledger.head'] ?? Buffer.alloc(0);
  const { store, externalHeadStore } = openHome(homePaths(base.places.home), { readOnly: true });
  try {
    let index = 0;
    for (const damage of everyByte(whole)) {
      index += 1;
      if (index % step === 0) await damaged(tally, options, base, store, damage);
    }
  } finally {
    await store.close();
    await externalHeadStore.close();
  }
  return tally;
}

async function damaged(
  tally: Tally,
  { folder }: CampaignOptions,
  base: Base,
  store: Parameters<typeof checkExternalHead>[0],
  { name, apply }: Damage,
): Promise<void> {
  const path = join(folder, 'torn.head');
  const label = `ledger.head ${name}`;
  writeFileSync(path, apply(base.files['ledger.head'] ?? Buffer.alloc(0)));
  tally.cases += 1;
  const { externalHeadStore } = openHead({ ...homePaths(base.places.home), head: path }, { readOnly: true });
  try {
    const head = await externalHeadStore.read();
    const behind = base.head - (head?.size ?? 0);
    // The opening compares the ledger with the older head as well as it can.
    await checkExternalHead(store, externalHeadStore);
    tally.that(head !== null && behind >= 0, () => `${label}: says ${JSON.stringify(head)}`);
    tally.note(behind === 0 ? 'says the newest head' : 'says the head before it');
    tally.most('most entries behind', behind);
  } catch (error) {
    const code = error instanceof LedgerError ? error.code : '';
    tally.that(code === 'LEDGER_TAMPERED', () => `${label}: ${String(error)}`);
    tally.note(`refused ${code}`);
  } finally {
    await externalHeadStore.close();
  }
}
