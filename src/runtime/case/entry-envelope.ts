// What a stored entry says of itself, as far as one entry can be verified alone.

import { quote } from '../../contract/canonical-json.js';
import { ENTRY_TYPES, type Entry, type EntryType } from '../../contract/run/entry.js';
import { isJsonObject, type Json } from '../../contract/json.js';
import { isEntryBody } from '../../contract/validators.js';
import type { StoredEntry } from '../../ports/ledger/ledger-store.js';
import { tamperedEntryError } from './tree-cursor.js';

/** Whether its text ends with its place: in canonical JSON `body`, which holds foreign text, comes before that. */
export const hasMatchingEnvelope = ({ text, seq, tree_id, type }: StoredEntry): boolean =>
  text.endsWith(`,"seq":${seq},"tree_id":${quote(tree_id)},"type":${quote(type)}}`);

/**
 * The entry, parsed. Its place is the one that its text ends with, which the caller has verified.
 * @throws LedgerError LEDGER_TAMPERED where it is no entry of its type, or no event of its place
 */
export function parseCaseEntry({ text, type, tree_id, seq, log_index }: StoredEntry): Entry {
  const entry = parseJson(text);
  if (!isJsonObject(entry) || !isEntryType(type) || !isEntryBody(type, entry['body']))
    throw tamperedEntryError(log_index);
  const { event_id, sequence } = entry['body'] as { readonly event_id?: string; readonly sequence?: number };
  if (type === 'audit_event' && (event_id !== `${tree_id}:${seq}` || sequence !== seq))
    throw tamperedEntryError(log_index);
  // Its body is one of its type: that was checked.
  return entry as unknown as Entry;
}

const isEntryType = (type: string): type is EntryType => (ENTRY_TYPES as readonly string[]).includes(type);

function parseJson(text: string): Json | null {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
