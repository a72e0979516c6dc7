// Every byte of the frames of the database's log that contain the last entries, damaged in every way: the rest is the
// ledger up to the last whole commit, or it is refused; it is never opened shorter than its head file says (D15).
//
//   T1. No damage is omitted by argument. For each, SQLite itself decides what the log still contains: the ledger is
//       opened as a home opens it, compared with its head file, and read from its first entry to its last.
//   T2. Only that is done hundreds of thousands of times, on one home in memory, of which only the end of the log is
//       rewritten. The home is small for that reason: a case costs its reading.
//   T3. For the first damage of each outcome, and at regular intervals, the whole home is opened for writing in a
//       separate folder: it recovers, continues to work, verifies, replays, and has the same outcome as the reading.

import { closeSync, cpSync, ftruncateSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { LedgerError } from '../../src/core/errors.js';
import { checkExternalHead } from '../../src/core/ledger/verification/check-external-head.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../src/core/ledger/proof/merkle.js';
import type { ExternalHead, ExternalHeadStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { homePaths, openHead, type HomePaths } from '../../src/home/home.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import type { CampaignOptions } from './campaign.js';
import { everyByte, walFrames } from './damage.js';
import { unharmed } from './fault-points.js';
import { openAt } from './ground.js';
import { placesIn } from './journal.js';
import { Tally } from './tally.js';
import { baseOf, REFUSALS, type Base } from './torn.js';
import { work } from './workload.js';

const ENTRIES = 5;
const WAL = 'ledger.db-wal';
const SIZES = ['--attached', '1', '--remote', '1', '--steps', '6'];
/** Of the damaged logs that were read, one in this number is opened as a whole home as well. */
const WHOLE_EVERY = 4_999;

export async function tornWal(options: CampaignOptions, step = 1): Promise<Tally> {
  const tally = new Tally('torn log of the database');
  // What the head file covers, and what it does not know yet.
  for (const { name, more } of [
    { name: 'wal', more: [] },
    { name: 'wal-behind', more: ['--head-stuck', '9'] },
  ]) {
    const base = await baseOf(options, name, more, true, SIZES);
    const torn = new TornHome(base, tempFolder('torn'), await vouchedBy(base));
    try {
      await ofBase(tally, options, torn, step);
    } finally {
      torn.remove();
    }
  }
  return tally;
}

async function vouchedBy({ places }: Base): Promise<ExternalHead | null> {
  const { externalHeadStore } = openHead(homePaths(places.home), { readOnly: true });
  const head = await externalHeadStore.read();
  await externalHeadStore.close();
  return head;
}

async function ofBase(tally: Tally, options: CampaignOptions, torn: TornHome, step: number): Promise<void> {
  const { base, wal } = torn;
  const from = await firstByte(torn);
  if (base.texts.length <= ENTRIES) throw new Error(`the victim has written ${base.texts.length} entries`);
  const end = wal.subarray(from);
  torn.keep(from);
  tally.most('bytes that hold the last entries', end.length);
  const roots = rootsOf(base.texts);
  const seen = new Set<string>();
  let index = 0;
  for (const { name, apply } of everyByte(end)) {
    index += 1;
    if (index % step !== 0) continue;
    const label = `seed ${options.seed} ${base.name}, from byte ${from} of the log: ${name}`;
    const damaged = apply(end);
    const read = await torn.read(damaged, true);
    judge(tally, base, roots, read, label);
    const outcome = read.texts === null ? read.message : String(read.texts.length);
    if (!seen.has(outcome) || tally.cases % WHOLE_EVERY === 0)
      await opened(tally, options, base, Buffer.concat([wal.subarray(0, from), damaged]), read, label);
    seen.add(outcome);
    if (index % 10_000 < step) options.say?.(`${name} of ${end.length}: ${tally.violations.length} violations`);
  }
  tally.note('different outcomes', seen.size);
}

/** The start of the first commit with any of the last entries: all its frames contain them, not only its last. */
async function firstByte(torn: TornHome): Promise<number> {
  const before = torn.base.texts.length - ENTRIES;
  let first = { at: torn.wal.length, kept: Infinity };
  for (const at of walFrames(torn.wal).reverse()) {
    const { texts } = await torn.read(torn.wal.subarray(0, at), false);
    const kept = texts?.length ?? 0;
    if (first.kept <= before && kept < first.kept) break;
    first = { at, kept };
  }
  return first.at;
}

/** The result of reading: everything that exists, or the reason for none. */
type Read =
  | { readonly texts: readonly string[]; readonly root: string }
  | { readonly texts: null; readonly code: string; readonly message: string };

/** A home whose database log is rewritten repeatedly. */
class TornHome {
  readonly base: Base;
  readonly wal: Buffer;
  /** Before this byte the log is unchanged. */
  #from = 0;
  readonly #paths: HomePaths;
  readonly #log: number;
  /** The head in its head file, which never changes. */
  readonly #vouched: Pick<ExternalHeadStore, 'read'>;

  constructor(base: Base, folder: string, vouched: ExternalHead | null) {
    this.base = base;
    this.#vouched = { read: () => Promise.resolve(vouched) };
    this.wal = base.files[WAL] ?? Buffer.alloc(0);
    this.#paths = homePaths(folder);
    for (const name of ['artifacts', 'keys']) symlinkSync(join(base.places.home, name), join(folder, name));
    for (const [file, bytes] of Object.entries(base.files)) writeFileSync(join(folder, file), bytes);
    this.#log = openSync(join(folder, WAL), 'r+');
  }

  /** From now on logs are equal to the first one up to this byte. */
  keep(from: number): void {
    ftruncateSync(this.#log, from);
    writeSync(this.#log, this.wal, 0, from, 0);
    this.#from = from;
  }

  /** Reads the ledger with this end of the log; the head file is compared only if `guarded`. */
  async read(end: Buffer, guarded: boolean): Promise<Read> {
    ftruncateSync(this.#log, this.#from + end.length);
    writeSync(this.#log, end, 0, end.length, this.#from);
    // What an ended process knew of the log.
    rmSync(`${this.#paths.ledger}-shm`, { force: true });
    try {
      const { ledger: file, artifacts: artifactsDir } = this.#paths;
      const store = openSqliteStore({ file, artifactsDir, readOnly: true });
      try {
        if (guarded) await checkExternalHead(store, this.#vouched);
        const { root } = await store.head();
        const texts: string[] = [];
        for await (const { text } of store.log()) texts.push(text);
        return { texts, root };
      } finally {
        await store.close();
      }
    } catch (error) {
      return refusalOf(error);
    }
  }

  remove(): void {
    closeSync(this.#log);
    rmSync(this.#paths.home, { recursive: true, force: true });
  }
}

const refusalOf = (error: unknown): Extract<Read, { texts: null }> => ({
  texts: null,
  code: error instanceof LedgerError ? error.code : 'none',
  message: String(error),
});

function judge(tally: Tally, base: Base, roots: readonly string[], read: Read, label: string): void {
  tally.cases += 1;
  if (read.texts === null) {
    tally.that(REFUSALS.includes(read.code), () => `${label}: ${read.message}`);
    tally.note(`refused ${read.code}`);
    return;
  }
  const { texts, root } = read;
  const same = texts.every((text, index) => text === base.texts[index]) && roots[texts.length] === root;
  tally.that(same, () => `${label}: what is left is not the ledger as it was at ${texts.length} entries`);
  tally.that(texts.length >= base.head, () => `${label}: opened with ${texts.length} of ${base.head} entries`);
  tally.note(texts.length === base.texts.length ? 'whole' : 'shorter, and not below the head');
}

/** The root of the log by its size. */
function rootsOf(texts: readonly string[]): readonly string[] {
  let head = EMPTY_HEAD;
  return [head.root, ...texts.map((text) => (head = extendHead(head, [leafHash(text)])).root)];
}

/** The whole home, as the next process opens it: refused as well, or recovered, and then it continues. */
async function opened(
  tally: Tally,
  options: CampaignOptions,
  base: Base,
  wal: Buffer,
  read: Read,
  label: string,
): Promise<void> {
  const places = placesIn(join(options.folder, 'torn-wal'));
  rmSync(places.folder, { recursive: true, force: true });
  mkdirSync(places.home, { recursive: true });
  for (const name of ['artifacts', 'keys', 'sandbox'])
    cpSync(join(base.places.home, name), join(places.home, name), { recursive: true });
  for (const [file, bytes] of Object.entries(base.files))
    writeFileSync(join(places.home, file), file === WAL ? wal : bytes);
  tally.note('opened whole');
  const life = `T${tally.cases}`;
  try {
    const { turnpike, close } = await openAt({ places, hooks: unharmed, life });
    try {
      await work({ turnpike, places, say: () => undefined, seed: 2, life, attached: 1, remote: 1, steps: 3 });
      const verdict = await turnpike.ledger.verify();
      tally.that(verdict.ok, () => `${label}: worked on, and verify says ${JSON.stringify(verdict)}`);
      const report = await turnpike.replay();
      tally.that(report.ok, () => `${label}: worked on, and replay says ${JSON.stringify(report.difference)}`);
      const texts: string[] = [];
      for await (const { text } of turnpike.ledger.log()) texts.push(text);
      const kept = read.texts ?? ['nothing was to be read'];
      const goesOn = texts.length > kept.length && kept.every((text, index) => text === texts[index]);
      tally.that(goesOn, () => `${label}: read ${said(read)}, then opened`);
    } finally {
      await close();
    }
  } catch (error) {
    const { code, message } = refusalOf(error);
    const alike = read.texts === null && read.code === code;
    tally.that(alike, () => `${label}: read ${said(read)}, but its writer says ${message}`);
  }
}

const said = (read: Read): string => (read.texts === null ? read.message : `${read.texts.length} entries`);
