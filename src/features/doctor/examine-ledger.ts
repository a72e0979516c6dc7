// The state of a ledger, as a reader sees it. Another process may be writing.

import { parseOwnJson } from '../../core/contract/json.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { LedgerStore, ExternalHeadStore } from '../../engine/ports/ledger/ledger-store.js';
import { readRestoreHistory } from '../../engine/restore-history.js';
import { LedgerError } from '../../core/errors.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import { LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import { doctorFinding, type DoctorFinding } from './finding.js';

/** Newest run trees that are read for unknown outcomes. */
const TREES_READ = 256;
/** How far the clock may be behind the newest entry. */
const CLOCK_MS_MAX = 5_000;

interface ExaminedLedger {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly clock: Clock;
}

export async function examineLedger(ledger: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  return [...(await examineHead(ledger)), ...(await examineClock(ledger)), ...(await examineEffects(ledger))];
}

async function examineHead({ store, externalHeadStore }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  try {
    const external = await externalHeadStore.read();
    await checkExternalHead(store, externalHeadStore, { acceptMissing: true });
    const { size } = await store.head();
    const found = [doctorFinding('ledger', 'ok', `${size} entries; \`turnpike ledger verify\` checks them all`)];
    if (external === null && size > 0) {
      found.push(doctorFinding('ledger', 'problem', 'the head file is missing: restore it from a backup'));
    }
    const { restores, unacknowledged } = await readRestoreHistory(store);
    if (restores > 0) found.push(doctorFinding('ledger', 'note', `restored from a backup: ${restores} times`));
    if (unacknowledged !== null) {
      const text = `execution is suspended since restore ${unacknowledged}: run \`turnpike restore acknowledge\``;
      found.push(doctorFinding('ledger', 'problem', text));
    }
    return found;
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return [doctorFinding('ledger', 'problem', `${error.code}: ${error.message}`)];
  }
}

async function examineClock({ store, externalHeadStore, clock }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  const { size } = await store.head();
  const archived = (await new LedgerReader(store, externalHeadStore).begin()).size;
  let newest: string | null = null;
  for await (const { type, text } of store.log(Math.max(archived, size - TREES_READ))) {
    if (type !== 'input') continue;
    const { time } = (parseOwnJson(text) as { readonly body: { readonly time?: string } }).body;
    if (time !== undefined && time > (newest ?? '')) newest = time;
  }
  if (newest === null) return [doctorFinding('clock', 'ok', 'no entry has a time to compare with')];
  const behind = Date.parse(newest) - clock.now();
  if (behind <= CLOCK_MS_MAX) return [doctorFinding('clock', 'ok', `not behind the newest entry (${newest})`)];
  const text = `the clock is ${Math.round(behind / 1_000)} s behind the newest entry (${newest}): set it`;
  return [doctorFinding('clock', 'problem', text)];
}

async function examineEffects({ store, externalHeadStore }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  let unfinished = 0;
  for await (const tree of store.openTrees()) unfinished += tree.unfinished ? 1 : 0;
  let unknown = 0;
  let first: string | null = null;
  for await (const tree of new LedgerReader(store, externalHeadStore).trees(TREES_READ)) {
    for (const [run_id, settlement] of tree.unknown) {
      if (settlement !== null) continue;
      unknown += 1;
      first ??= run_id;
    }
  }
  const open = `${unfinished} run trees have unfinished work; a service that runs, or the next opening, finishes it`;
  const found = [
    doctorFinding('effects', unfinished > 0 ? 'note' : 'ok', unfinished > 0 ? open : 'no unfinished work'),
  ];
  if (first !== null) {
    const text = `${unknown} effects have an unknown outcome (first: ${first}): find it out, and run \`turnpike runs resolve\``;
    found.push(doctorFinding('effects', 'problem', text));
  }
  return found;
}
