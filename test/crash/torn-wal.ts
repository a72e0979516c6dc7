// Every byte of the frames of the database's log that hold the last entries, damaged in every way: what is left is the
// ledger up to the last whole commit, or it is refused; it is never shorter than its head file says, and opened (D15).

import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerError } from '../../src/errors.js';
import { checkAnchor } from '../../src/ledger/check-anchor.js';
import { homePaths, openHome } from '../../src/runtime/home.js';
import type { CampaignOptions } from './campaign.js';
import { everyByte, walFrames, type Damage } from './damage.js';
import { placesIn } from './journal.js';
import { Tally } from './tally.js';
import { baseOf, REFUSALS, type Base } from './torn.js';

const ENTRIES = 5;

export async function tornWal(options: CampaignOptions, step = 1): Promise<Tally> {
  const tally = new Tally('torn log of the database');
  // What the head file vouches for, and what it has not heard of yet.
  await ofBase(tally, options, await baseOf(options, 'wal', [], true), step);
  await ofBase(tally, options, await baseOf(options, 'wal-behind', ['--anchor-stuck', '9'], true), step);
  return tally;
}

async function ofBase(tally: Tally, options: CampaignOptions, base: Base, step: number): Promise<void> {
  const wal = base.files['ledger.db-wal'] ?? Buffer.alloc(0);
  const from = await firstByte(options, base, wal);
  tally.most('bytes that hold the last entries', wal.length - from);
  let index = 0;
  for (const damage of everyByte(wal, from)) {
    index += 1;
    if (index % step !== 0) continue;
    await damaged(tally, options, base, damage);
    if (index % 10_000 === 0) options.say?.(`${damage.name} of ${wal.length}: ${tally.violations.length} violations`);
  }
}

/** Where the first of the frames begins without which the last entries are not all there. */
async function firstByte(options: CampaignOptions, base: Base, wal: Buffer): Promise<number> {
  for (const at of walFrames(wal).reverse()) {
    const kept = await opened(options, base, wal.subarray(0, at));
    if (typeof kept === 'string' || kept.length <= base.texts.length - ENTRIES) return at;
  }
  return 0;
}

async function damaged(tally: Tally, options: CampaignOptions, base: Base, { name, apply }: Damage): Promise<void> {
  const label = `seed ${options.seed} ledger.db-wal ${name}`;
  tally.cases += 1;
  const kept = await opened(options, base, apply(base.files['ledger.db-wal'] ?? Buffer.alloc(0)), true);
  if (typeof kept === 'string') {
    tally.that(REFUSALS.includes(kept), () => `${label}: ${kept}`);
    tally.note(`refused ${kept}`);
    return;
  }
  const same = kept.every((text, index) => text === base.texts[index]);
  tally.that(same && kept.length >= base.head, () => `${label}: opened with ${kept.length} of ${base.head} entries`);
  tally.note(kept.length === base.texts.length ? 'whole' : 'shorter, and not below the head');
}

/** @returns the texts that are read, or why they are not; only where `guarded` the head file has a say */
async function opened(
  { folder }: CampaignOptions,
  base: Base,
  wal: Uint8Array,
  guarded = false,
): Promise<readonly string[] | string> {
  const places = placesIn(join(folder, 'torn-wal'));
  rmSync(places.folder, { recursive: true, force: true });
  mkdirSync(places.home, { recursive: true });
  for (const name of ['artifacts', 'keys']) symlinkSync(join(base.places.home, name), join(places.home, name));
  for (const [file, bytes] of Object.entries(base.files)) {
    writeFileSync(join(places.home, file), file === 'ledger.db-wal' ? wal : bytes);
  }
  try {
    const { store, anchor } = openHome(homePaths(places.home), { readOnly: true });
    try {
      if (guarded) await checkAnchor(store, anchor);
      const texts: string[] = [];
      for await (const { text } of store.log()) texts.push(text);
      return texts;
    } finally {
      await store.close();
      await anchor.close();
    }
  } catch (error) {
    return error instanceof LedgerError ? error.code : String(error);
  }
}
