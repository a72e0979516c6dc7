// The entries of one case out of the one log that all cases share. What leaves the platform is read from a log that is
// whole: its root must come out as the head says, each time that it is read.

import { quote } from '../../contract/canonical-json.js';
import { ENTRY_TYPES, isOpening, type Entry, type EntryType } from '../../contract/entry.js';
import { isJsonObject, type Json } from '../../contract/json.js';
import { isEntryBody } from '../../contract/validators.js';
import { LedgerError } from '../../errors.js';
import { EMPTY_HEAD, extend, leafHash } from '../../ledger/merkle.js';
import type { LedgerStore, LogHead, StoredEntry } from '../../ports/ledger-store.js';

/** So many entries are hashed, and given on, at once: a promise for each would keep far more in memory than they do. */
const ENTRIES_AT_ONCE = 64;

/** One case, as far as the log had come at `head`: what is committed meanwhile is in no pass over it. */
export interface CaseSlice {
  readonly case_id: string;
  readonly head: LogHead;
}

export interface CaseEntry {
  readonly log_index: number;
  readonly entry: Entry;
}

/**
 * The entries of these types of all trees that were opened for the case, in the order of the log, some at a
 * time. Memory grows with the number of its trees.
 * @throws LedgerError LEDGER_ARCHIVED where trees of the case are; LEDGER_TAMPERED at an entry that is none, and at the
 * end if the log is not that of `head`
 */
export async function* entriesOfCase(
  store: LedgerStore,
  { case_id, head }: CaseSlice,
  types: readonly EntryType[],
): AsyncGenerator<readonly CaseEntry[]> {
  if (head.size === 0) return;
  if (await store.archives.hasCase(case_id)) throw archived(case_id);
  const trees = new Set<string>();
  let log: LogHead = (await store.archives.parts()).at(-1) ?? EMPTY_HEAD;
  let leaves: string[] = [];
  let found: CaseEntry[] = [];
  for await (const stored of store.log(log.size)) {
    if (stored.log_index !== log.size + leaves.length || !standsAt(stored)) throw tampered(stored.log_index);
    leaves.push(leafHash(stored.text));
    const opens = stored.seq === 0 && isOpeningOf(stored, case_id);
    if (opens) trees.add(stored.tree_id);
    if (trees.has(stored.tree_id) && types.some((type) => type === stored.type)) {
      found.push({ log_index: stored.log_index, entry: entryOf(stored) });
    }
    const isLast = log.size + leaves.length === head.size;
    if (leaves.length < ENTRIES_AT_ONCE && !isLast) continue;
    log = extend(log, leaves);
    yield found;
    [leaves, found] = [[], []];
    if (isLast) break;
  }
  if (log.size !== head.size || log.root !== head.root) throw tampered(head.size);
}

/** Canonical JSON ends with the place, and the body, in which others have a word, stands before it. */
const standsAt = ({ text, seq, tree_id, type }: StoredEntry): boolean =>
  text.endsWith(`,"seq":${seq},"tree_id":${quote(tree_id)},"type":${quote(type)}}`);

function isOpeningOf(stored: StoredEntry, case_id: string): boolean {
  const { type, body } = entryOf(stored);
  return type === 'input' && isOpening(body) && body.case_id === case_id;
}

/** Its place is what its text ends with; that the text is the one that was committed, the root tells at the end. */
function entryOf({ text, type, tree_id, seq, log_index }: StoredEntry): Entry {
  const entry = parsed(text);
  if (!isJsonObject(entry) || !isEntryType(type) || !isEntryBody(type, entry['body'])) throw tampered(log_index);
  const { event_id, sequence } = entry['body'] as { readonly event_id?: string; readonly sequence?: number };
  if (type === 'audit_event' && (event_id !== `${tree_id}:${seq}` || sequence !== seq)) throw tampered(log_index);
  // Its body is one of its type: that was checked.
  return entry as unknown as Entry;
}

const isEntryType = (type: string): type is EntryType => (ENTRY_TYPES as readonly string[]).includes(type);

function parsed(text: string): Json | null {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

/** What is known of the rest of a case is not what is known of the case. */
const archived = (case_id: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_ARCHIVED',
    message: `run trees of case ${case_id} are in an archive: it can be neither exported nor promoted from`,
  });

const tampered = (log_index: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `the ledger is not what it was at entry ${log_index}: run \`turnpike ledger verify\``,
  });
