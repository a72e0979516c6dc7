// Compares the executed effects, by the journal, with the effects in the ledger (C35, D8, D9).
//
// An effect is repeated if the executor runs the same idempotency key again, in whichever process. A settlement is not
// a repetition: it looks, and changes only what a process that died half way has left: the temporary file of a write
// and the old name of a rename.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TEMP_PREFIX } from '../../src/sandbox/files/sandbox-walk.js';
import { journalOf, linesOf, type JournalLine, type Places } from './journal.js';
import type { LedgerFacts } from './ledger-facts.js';
import { LARGE_FILE } from './script.js';
import type { Tally } from './tally.js';

type Begin = Extract<JournalLine, { at: 'begin' }>;
type Status = Extract<JournalLine, { at: 'done' }>['status'];

/** The journal's facts about one key. */
interface Deed {
  readonly begun: readonly Begin[];
  readonly done: readonly Status[];
}

/** No effect ran twice, without an intent, or after a fault. Holds at any time. */
export function checkJournal(tally: Tally, places: Places, facts: LedgerFacts, label: string): void {
  const journal = journalOf(places);
  const intents = new Set(facts.intents);
  for (const [key, { begun }] of deedsOf(journal)) {
    tally.that(begun.length <= 1, () => `${label}: effect ${key} was performed ${begun.length} times`);
    tally.that(intents.has(key), () => `${label}: effect ${key} was performed without an intent in the ledger`);
  }
  for (const line of journal) {
    if (line.at === 'settled') {
      tally.that(isTidy(line), () => `${label}: settling ${line.key} changed ${line.changed.join(', ')}`);
    }
  }
  const sent = (linesOf(places.outbox) as readonly { readonly key: string }[]).map(({ key }) => key);
  tally.that(new Set(sent).size === sent.length, () => `${label}: something was sent twice`);
}

/** Every intent has one outcome, and it is the right one. Holds after an opening. */
export function checkOutcomes(tally: Tally, places: Places, facts: LedgerFacts, label: string): void {
  const journal = journalOf(places);
  const deeds = deedsOf(journal);
  const paths = pathsOf(facts);
  const contended = contendedIn(paths);
  for (const key of facts.intents) {
    const results = facts.results.get(key) ?? [];
    tally.that(results.length === 1, () => `${label}: intent ${key} has ${results.length} outcomes`);
    const [result] = results;
    if (result === undefined) continue;
    const deed = deeds.get(key) ?? { begun: [], done: [] };
    const isSent = (paths.get(key) ?? []).some((path) => path.includes('/sandbox/outbox-'));
    const isContended = (paths.get(key) ?? []).some((path) => contended.has(path));
    const expected = result.settled ? settledAs(deed, isSent, isContended) : deed.done;
    const how = `${result.settled ? 'settled' : 'reported'} as ${result.status}`;
    tally.that(expected.includes(result.status), () => `${label}: ${key} was ${how}, not ${expected.join(' or ')}`);
    if (result.settled) tally.note(`settled ${result.status}`);
    checkUnknown(tally, facts, key, result.status, label);
  }
}

/** D8: such a run has failed with OUTCOME_UNKNOWN, and no other run has. */
function checkUnknown(tally: Tally, facts: LedgerFacts, key: string, status: Status, label: string): void {
  const record = facts.records.get(key);
  const isUnknown = record?.error?.error_code === 'OUTCOME_UNKNOWN';
  tally.that(isUnknown === (status === 'unknown'), () => `${label}: ${key} is ${status}, its run ${record?.outcome}`);
}

/** The permitted results of a settlement, by what is known to have happened. */
function settledAs({ begun, done }: Deed, isSent: boolean, isContended: boolean): readonly Status[] {
  if (isSent) return ['unknown'];
  if (isContended) return ['done', 'failed', 'unknown'];
  if (begun.length === 0) return ['failed'];
  return done.length === 0 ? ['done', 'failed'] : done;
}

/** The sandbox contains exactly the results of the completed changes. Holds after an opening. */
export function checkSandbox(tally: Tally, places: Places, facts: LedgerFacts, label: string): void {
  const expected = new Map<string, string>();
  const unsure = new Set<string>();
  for (const line of journalOf(places)) {
    if (line.at !== 'begin' || (line.args['path'] ?? '').startsWith('/sandbox/outbox-')) continue;
    const status = facts.results.get(line.key)?.[0]?.status;
    if (status === 'done') apply(expected, line);
    if (status === 'unknown') for (const path of touched(line)) unsure.add(path);
  }
  const found = filesOf(join(places.home, 'sandbox'));
  for (const path of new Set([...expected.keys(), ...found.keys()])) {
    if (unsure.has(path)) continue;
    const same = expected.get(path) === found.get(path);
    tally.that(same, () => `${label}: ${path} is ${short(found.get(path))}, not ${short(expected.get(path))}`);
  }
}

function apply(files: Map<string, string>, { action, case_id, args }: Begin): void {
  const at = (path: string | undefined): string => `${case_id} ${(path ?? '').replace(/\/$/, '')}`;
  if (action === 'WRITE_FILE') files.set(at(args['path']), args['content'] ?? '');
  if (action === 'CREATE_DIRECTORY') files.set(at(args['path']), 'directory');
  if (action === 'DELETE_FILE') files.delete(at(args['path']));
  if (action === 'RENAME_FILE') {
    files.set(at(args['destination']), files.get(at(args['source'])) ?? '');
    files.delete(at(args['source']));
  }
}

const touched = ({ case_id, args }: Begin): readonly string[] =>
  ['path', 'source', 'destination'].flatMap((name) => (args[name] === undefined ? [] : [`${case_id} ${args[name]}`]));

/** Contents by `case path`; the temporary file of a settled effect must be gone. */
function filesOf(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const case_id of existsSync(root) ? readdirSync(root) : []) {
    for (const entry of readdirSync(join(root, case_id), { withFileTypes: true, recursive: true })) {
      if (entry.name === LARGE_FILE) continue;
      const path = join(entry.parentPath, entry.name);
      const content = entry.isDirectory() ? 'directory' : readFileSync(path, 'utf8');
      found.set(`${case_id} /sandbox/${path.slice(join(root, case_id).length + 1)}`, content);
    }
  }
  return found;
}

function deedsOf(journal: readonly JournalLine[]): ReadonlyMap<string, Deed> {
  const deeds = new Map<string, Deed>();
  for (const line of journal) {
    if (line.at !== 'begin' && line.at !== 'done') continue;
    const { begun, done } = deeds.get(line.key) ?? { begun: [], done: [] };
    const deed = line.at === 'begin' ? { begun: [...begun, line], done } : { begun, done: [...done, line.status] };
    deeds.set(line.key, deed);
  }
  return deeds;
}

/** The paths of each intent, by its step's trace: also of those that never started. */
function pathsOf(facts: LedgerFacts): ReadonlyMap<string, readonly string[]> {
  const paths = new Map<string, readonly string[]>();
  for (const { mediated_run_id, args_summary } of facts.traces) {
    if (mediated_run_id === null || args_summary === null) continue;
    const key = `${mediated_run_id}.1`;
    const values = Object.values(args_summary).filter((value): value is string => typeof value === 'string');
    const case_id = facts.created.get(mediated_run_id)?.case_id ?? '';
    if (facts.created.has(key))
      paths.set(
        key,
        values.map((value) => `${case_id} ${value}`),
      );
  }
  return paths;
}

/** The paths that agents of more than one run tree change: there, one may find what another has left. */
function contendedIn(paths: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const trees = new Map<string, Set<string>>();
  for (const [key, each] of paths) {
    for (const path of each) trees.set(path, (trees.get(path) ?? new Set()).add(key.split('.', 1)[0] ?? ''));
  }
  return new Set([...trees].filter(([, by]) => by.size > 1).map(([path]) => path));
}

const isTidy = ({ action, changed }: Extract<JournalLine, { at: 'settled' }>): boolean => {
  const rest = changed.filter((each) => !(each.startsWith('-') && each.includes(TEMP_PREFIX)));
  return rest.length === 0 || (action === 'RENAME_FILE' && rest.length === 1 && rest[0]?.startsWith('-') === true);
};

const short = (content: string | undefined): string =>
  content === undefined ? 'not there' : JSON.stringify(content.slice(0, 60));
