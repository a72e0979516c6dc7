// Compares the counted effects of an agent's actions with the ledger. Every action has happened once or not at all; an
// outcome that cannot be determined is recorded as unknown, and no other.

import Database from 'better-sqlite3';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fold } from '../../src/kernel/fold.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { actsOf, fileOf, follow, type Act } from './effects-script.js';
import {
  CASE_AGENT,
  deedsFile,
  deedsOf,
  OWN_TABLES,
  recordsFile,
  serviceOn,
  TOOLS,
  type Play,
} from './effects-service.js';
import { unharmed } from './fault-points.js';
import { openAt } from './ground.js';
import { journalOf, type Places } from './journal.js';
import { factsOf, type LedgerFacts } from './ledger-facts.js';
import type { Tally } from './tally.js';

type Verdict = 'none' | 'success' | 'failed' | 'unknown';

/** As the dead process left it: no effect twice, none without an intent, own rows exactly with their outcomes. */
export async function checkKilledEffects(tally: Tally, places: Places, label: string): Promise<void> {
  const { store, externalHeadStore } = openHome(homePaths(places.home), { readOnly: true });
  try {
    const facts = await factsOf(new LedgerReader(store, externalHeadStore));
    const counts = countsIn(places);
    const begun = new Set([...facts.records.values()].filter(hasBegun).map(({ run_name }) => run_name));
    for (const act of actsOf('w1')) {
      if (act.what === null) continue;
      const count = counts.get(act.what) ?? 0;
      tally.that(count <= 1, () => `${label}: ${act.what} has happened ${count} times`);
      tally.that(count === 0 || begun.has(act.request), () => `${label}: ${act.what} has happened without an intent`);
      if (act.kind !== 'own') continue;
      const verdict = verdictOf(facts, act);
      tally.that(count === Number(verdict === 'success'), () => `${label}: row ${act.what}: ${count}, run ${verdict}`);
    }
    checkKeys(tally, places, facts, label);
  } finally {
    await store.close();
    await externalHeadStore.close();
  }
}

/** Opens the home, which recovers it; another agent repeats everything, undisturbed; then all effects are counted. */
export async function checkReopenedEffects(
  tally: Tally,
  places: Places,
  label: string,
  { planted = 'none', brief = false }: Play = {},
): Promise<void> {
  const service = serviceOn({ places, hooks: unharmed, planted });
  const { turnpike, close } = await openAt({ places, hooks: unharmed, life: '9', ...service });
  try {
    const { ledger, recovery } = turnpike;
    tally.that(recovery.damaged === 0, () => `${label}: a run tree does not fold any more`);
    await follow(await turnpike.startAgent(CASE_AGENT), 'w9', brief);
    const facts = await factsOf(ledger);
    for (const { run_id, status } of facts.records.values()) {
      const isOpen = status === 'created' || status === 'running';
      tally.that(!isOpen, () => `${label}: run ${run_id} is ${status} after the opening`);
    }
    await checkActs(tally, places, { ledger, facts, again: actsOf('w9', brief) }, label);
    const verified = await ledger.verify();
    tally.that(verified.ok, () => `${label}: verify: ${JSON.stringify(verified)}`);
    const replayed = await ledger.replay();
    tally.that(replayed.ok, () => `${label}: replay: ${JSON.stringify(replayed.difference)}`);
  } finally {
    await close();
  }
}

interface CheckedRun {
  readonly ledger: LedgerReader;
  readonly facts: LedgerFacts;
  /** The actions of the other agent. */
  readonly again: readonly Act[];
}

/** Compares every counted action of both agents with its run. */
async function checkActs(
  tally: Tally,
  places: Places,
  { ledger, facts, again }: CheckedRun,
  label: string,
): Promise<void> {
  const counts = countsIn(places);
  const killed = actsOf('w1');
  for (const act of [...killed, ...again]) checkAct(tally, facts, act, counts.get(act.what ?? '') ?? 0, label);
  for (const act of killed) {
    if (act.what !== null) tally.note(`${act.kind} ${verdictOf(facts, act)} ${counts.get(act.what) ?? 0}`);
  }
  for (const act of again) {
    const verdict = verdictOf(facts, act);
    tally.that(verdict === 'success', () => `${label}: ${act.request} of another agent is ${verdict}`);
  }
  const known = new Set([...killed, ...again].map(({ what }) => what));
  const foreign = [...counts.keys()].filter((what) => !known.has(what));
  tally.that(foreign.length === 0, () => `${label}: no action has requested ${foreign.join(', ')}`);
  checkKeys(tally, places, facts, label);
  for (const [run_id, results] of facts.results) {
    tally.that(results.length === 1, () => `${label}: ${run_id} has ${results.length} outcomes`);
  }
  const listed = await unsettledIn(ledger);
  const unknown = killed.filter((act) => verdictOf(facts, act) === 'unknown').map((act) => runOf(facts, act)?.run_id);
  tally.that(
    listed.join() === unknown.join(),
    () => `${label}: unsettled are ${listed.join(' ')}, unknown are ${unknown.join(' ')}`,
  );
}

function checkAct(tally: Tally, facts: LedgerFacts, act: Act, count: number, label: string): void {
  const verdict = verdictOf(facts, act);
  const finding = `${label}: ${act.what ?? act.request} has happened ${count} times and its run is ${verdict}`;
  if (act.kind === 'read') {
    tally.that(verdict !== 'unknown', () => finding);
    return;
  }
  tally.that(count <= 1, () => finding);
  const agrees = verdict === 'unknown' ? act.kind === 'unaskable' : count === Number(verdict === 'success');
  tally.that(agrees, () => finding);
  // D9: the effect has the key of the run that contains the allow.
  const run = runOf(facts, act);
  if (run?.error?.error_code !== 'OUTCOME_UNKNOWN') return;
  tally.that(run.status === 'failed' && !run.error.retryable, () => `${label}: ${run.run_id} may be tried again`);
}

/** A key belongs to one action, and is that of its run. */
function checkKeys(tally: Tally, places: Places, facts: LedgerFacts, label: string): void {
  for (const tool of TOOLS) {
    const deeds = deedsOf(deedsFile(places, tool));
    for (const { key, what } of deeds) {
      const same = deeds.filter((deed) => deed.key === key).length;
      tally.that(same === 1, () => `${label}: ${tool} was done ${same} times under the key ${key}`);
      tally.that(facts.records.get(key)?.run_name === tool, () => `${label}: ${what} was done under the key ${key}`);
    }
  }
  const begun = journalOf(places).flatMap((line) => (line.at === 'begin' ? [line.key] : []));
  tally.that(new Set(begun).size === begun.length, () => `${label}: a file was written twice: ${begun.join(' ')}`);
}

const hasBegun = ({ started_at_utc }: { readonly started_at_utc?: string }): boolean => started_at_utc !== undefined;

/** The run that executed an action: for a file the db_write run below the first one. */
function runOf(facts: LedgerFacts, { proposal_id }: Act) {
  const run_id = facts.traces.find((trace) => trace.proposal_id === proposal_id)?.mediated_run_id ?? '';
  return facts.records.get(`${run_id}.1`) ?? facts.records.get(run_id) ?? null;
}

function verdictOf(facts: LedgerFacts, act: Act): Verdict {
  const run = runOf(facts, act);
  if (run === null) return 'none';
  if (run.status === 'completed') return 'success';
  return run.error?.error_code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'failed';
}

/** How often each effect is found outside. */
function countsIn(places: Places): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const add = (what: string, by = 1): void => void counts.set(what, (counts.get(what) ?? 0) + by);
  for (const tool of TOOLS) for (const { what } of deedsOf(deedsFile(places, tool))) add(what);
  for (const table of OWN_TABLES)
    for (const what of rowsIn(homePaths(places.home).ledger, `records_${table}`, 'id')) add(what);
  for (const what of rowsIn(recordsFile(places), 'counted', 'what')) add(what);
  for (const { what } of [...actsOf('w1'), ...actsOf('w9')].filter(({ kind }) => kind === 'file')) {
    const path = join(places.home, 'sandbox/case-local', fileOf(what ?? '').slice('/sandbox/'.length));
    if (what !== null && existsSync(path)) add(what, readFileSync(path, 'utf8') === what ? 1 : Infinity);
  }
  return counts;
}

function rowsIn(file: string, table: string, column: string): readonly string[] {
  const db = new Database(file, { readonly: true });
  try {
    const isThere = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== undefined;
    return isThere ? (db.prepare(`SELECT ${column} FROM ${table}`).pluck().all() as readonly string[]) : [];
  } finally {
    db.close();
  }
}

/** What an operator is shown: the runs with an unknown outcome, as the folded trees list them. */
async function unsettledIn(ledger: LedgerReader): Promise<readonly string[]> {
  const folds = new Map<string, Fold>();
  for await (const { tree_id, seq, text, type, log_index } of ledger.log()) {
    const fold = folds.get(tree_id) ?? new Fold(tree_id);
    folds.set(tree_id, fold);
    const taken = fold.apply(
      { seq, text },
      type === 'input' ? await ledger.artifactsOf({ tree_id, seq, log_index }) : [],
    );
    if ('difference' in taken) throw new Error(`${tree_id} does not fold: ${JSON.stringify(taken.difference)}`);
  }
  return [...folds.values()].flatMap(({ tree }) => tree.unsettled.map(({ context }) => context.run_id));
}
