// Torn and flipped bytes in the last pages of database and log, compared with the output of a victim and the position
// of the head file (D15):
//
//   Every entry below the head file's size is present after an opening, or the opening refuses, or verify or replay
//   report the damage. Above it, only the guarantees of the disk hold: the head file follows each commit, and no
//   response waits for it.

import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LedgerError } from '../../src/core/errors.js';
import { EMPTY_HEAD } from '../../src/core/ledger/proof/merkle.js';
import { homePaths, openHead, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { prepare } from './check-home.js';
import { Victim } from './children.js';
import type { CampaignOptions } from './campaign.js';
import { damages, type Damage } from './damage.js';
import { unharmed } from './fault-points.js';
import { openAt } from './ground.js';
import { placesIn, type Places } from './journal.js';
import { factsOf } from './ledger-facts.js';
import { Tally } from './tally.js';
import type { Said } from './workload.js';
import { inputOf } from '../fixtures/marks.js';

/** A home as its process left it, before any damage. */
export interface Base {
  readonly name: string;
  readonly places: Places;
  readonly files: Readonly<Record<string, Buffer>>;
  readonly texts: readonly string[];
  readonly head: number;
  /** The places of the traces of the printed responses in the log. */
  readonly acknowledged: readonly number[];
  /** The printed input ids, each with its tree. */
  readonly inputs: readonly (readonly [tree_id: string, input_id: string])[];
}

const FILES = ['ledger.db', 'ledger.db-wal', 'ledger.head'] as const;
/** The errors with which an opening may refuse: all documented in docs/errors.md. */
export const REFUSALS = ['LEDGER_TAMPERED', 'LEDGER_BELOW_HEAD', 'LEDGER_UNAVAILABLE'];

export interface TornOptions extends CampaignOptions {
  /** Number of damaged versions of each file of each home. */
  readonly samples: number;
  /** Which homes; default: all three. */
  readonly kinds?: readonly BaseKind[];
  /** How many pages from the end are damaged. */
  readonly pages?: number;
  /** Opens without a covering head file: the findings that the campaign must then report. */
  readonly unguarded?: boolean;
}

/** Homes that were closed, killed, and killed while their head file was behind: each is damaged, opened and checked. */
export async function torn(options: TornOptions): Promise<Tally> {
  const tally = new Tally('torn pages');
  for (const kind of options.kinds ?? (['closed', 'killed', 'behind'] as const)) {
    const base = await baseOf(options, kind, BASES[kind].more, BASES[kind].killed);
    for (const file of FILES.slice(0, 2)) {
      const bytes = base.files[file];
      if (bytes === undefined || bytes.length === 0) continue;
      for (const damage of damages(file, bytes, options)) {
        await damaged(tally, options, base, file, damage);
      }
      options.say?.(`${base.name} ${file}: ${tally.violations.length} violations`);
    }
  }
  return tally;
}

const BASES = {
  closed: { more: [], killed: false },
  killed: { more: [], killed: true },
  /** Its head file is no longer written after a while. */
  behind: { more: ['--head-stuck', '9'], killed: true },
} as const;
type BaseKind = keyof typeof BASES;

const SIZES = ['--attached', '3', '--remote', '1', '--steps', '9'];

/** A home that a victim has worked in; `killed` leaves the last commits in the log of the database. */
export async function baseOf(
  { folder, program, seed }: CampaignOptions,
  name: string,
  more: readonly string[],
  killed: boolean,
  sizes: readonly string[] = SIZES,
): Promise<Base> {
  const places = await prepare(join(folder, `base-${name}`));
  const hold = killed ? ['--hold'] : [];
  const victim = new Victim(program, ['--folder', places.folder, '--seed', String(seed), ...sizes, ...hold, ...more]);
  if (killed) {
    await workedOff(victim);
    victim.kill();
  }
  const { said, stderr } = await victim.ended;
  if (!isWorkedOff(said)) throw new Error(`the victim has not worked: ${stderr}`);
  const files = FILES.filter((file) => existsSync(join(places.home, file)));
  const read = Object.fromEntries(files.map((file) => [file, readFileSync(join(places.home, file))]));
  const at = { name, places, files: read };
  return { ...at, ...(await contentsOf(places, said)) };
}

const isWorkedOff = (said: readonly Said[]): boolean => said.at(-1)?.said === 'lag' || said.at(-2)?.said === 'lag';

/**
 * Until it has printed everything, and its last head had time to reach the disk; no check depends on whether it did.
 */
async function workedOff(victim: Victim): Promise<void> {
  for (let lines = 1; !isWorkedOff(victim.said) && lines < 1_000; lines += 1) await victim.lines(lines);
  await pause(100);
}

async function contentsOf(places: Places, said: readonly Said[]) {
  const { store, externalHeadStore } = openHome(homePaths(places.home), { readOnly: true });
  try {
    const texts: string[] = [];
    for await (const { text } of store.log()) texts.push(text);
    const { traces } = await factsOf(new LedgerReader(store, externalHeadStore));
    const responses = said.filter((line) => line.said === 'response');
    const printed = new Set(responses.map(({ run_id, response_sha256 }) => `${run_id} ${response_sha256}`));
    const acknowledged = traces
      .filter(({ run_id, response_sha256 }) => printed.has(`${run_id} ${response_sha256}`))
      .map(({ log_index }) => log_index);
    const inputs = responses.flatMap(({ run_id, input_id }) =>
      input_id === null ? [] : [[run_id.split('.', 1)[0] ?? '', input_id] as const],
    );
    return { texts, acknowledged, inputs, head: (await externalHeadStore.read())?.size ?? 0 };
  } finally {
    await store.close();
    await externalHeadStore.close();
  }
}

async function damaged(
  tally: Tally,
  options: TornOptions,
  base: Base,
  file: string,
  { name, apply }: Damage,
): Promise<void> {
  const label = `seed ${options.seed} ${base.name} ${file} ${name}`;
  const places = placesIn(join(options.folder, 'torn'));
  rmSync(places.folder, { recursive: true, force: true });
  mkdirSync(join(places.home, 'sandbox'), { recursive: true });
  for (const name of ['artifacts', 'keys']) symlinkSync(join(base.places.home, name), join(places.home, name));
  for (const [each, bytes] of Object.entries(base.files)) {
    writeFileSync(join(places.home, each), each === file ? apply(bytes) : bytes);
  }
  if (options.unguarded === true) await vouchForNothing(places);
  tally.cases += 1;
  const kept = await opening(tally, places, label);
  if (typeof kept === 'string') tally.note(kept);
  else await judge(tally, places, base, kept, label);
  rmSync(places.folder, { recursive: true, force: true });
}

async function vouchForNothing(places: Places): Promise<void> {
  const paths = homePaths(places.home);
  rmSync(paths.head);
  const { externalHeadStore } = openHead(paths, { readOnly: false });
  await externalHeadStore.write({ size: EMPTY_HEAD.size, root: EMPTY_HEAD.root });
  await externalHeadStore.close();
}

/** @returns the texts of a ledger that seems to be intact, or the finding */
async function opening(tally: Tally, places: Places, label: string): Promise<readonly string[] | string> {
  let step = 'refused';
  try {
    const { turnpike, close } = await openAt({ places, hooks: unharmed, life: '2' });
    try {
      step = 'found by verify';
      if (!(await turnpike.ledger.verify()).ok) return found(tally, step);
      step = 'found by replay';
      if (!(await turnpike.replay()).ok) return found(tally, step);
      const texts: string[] = [];
      for await (const { text } of turnpike.ledger.log()) texts.push(text);
      return texts;
    } finally {
      await close();
    }
  } catch (error) {
    const code = error instanceof LedgerError ? error.code : '';
    const isDocumented = REFUSALS.includes(code);
    tally.that(isDocumented, () => `${label}: ${step}: ${error instanceof Error ? error.stack : String(error)}`);
    return `${step} ${code}`;
  }
}

/** Reporting the damage is the required result. */
function found(tally: Tally, step: string): string {
  tally.checks += 1;
  return step;
}

/** The ledger seems to be intact: then everything that the head file covered must be present. */
async function judge(tally: Tally, places: Places, base: Base, texts: readonly string[], label: string): Promise<void> {
  const differs = base.texts.findIndex((text, index) => texts[index] !== text);
  const kept = differs === -1 ? base.texts.length : differs;
  tally.note(kept === base.texts.length ? 'whole' : 'shorter, and not below the head');
  tally.that(
    kept >= base.head,
    () => `${label}: silently lost entries from ${kept}, the head file was at ${base.head}`,
  );
  const lost = base.acknowledged.filter((log_index) => log_index >= kept);
  tally.most('most responses lost above the head', lost.length);
  if (kept < base.texts.length) return;
  const { store, externalHeadStore } = openHome(homePaths(places.home), { readOnly: true });
  for (const [tree_id, input_id] of base.inputs) {
    const found = await inputOf(store, tree_id, input_id).catch(() => null);
    if (found === null) tally.note('input marks lost');
  }
  await store.close();
  await externalHeadStore.close();
}
