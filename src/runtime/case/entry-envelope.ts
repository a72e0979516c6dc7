// Checks a stored entry, as far as one entry can be verified alone.

import { isJsonObject, type Json, parseOwnJson, quote } from '../../core/contract/json.js';
import { entryTypes, type Entry, type EntryType } from '../../core/contract/run/entry.js';
import { missingFeature, missingFeatureError } from '../../core/contract/run/feature-vocabulary.js';
import { isEntryBody } from '../../core/contract/validators.js';
import type { StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { tamperedEntryError } from './tree-cursor.js';

/**
 * Whether the text ends with the entry's place. In canonical JSON, `body`, which contains untrusted text, comes before.
 */
export const hasMatchingEnvelope = ({ text, seq, tree_id, type }: StoredEntry): boolean =>
  text.endsWith(`,"seq":${seq},"tree_id":${quote(tree_id)},"type":${quote(type)}}`);

/**
 * Parses an entry. The caller has verified the place at the end of its text.
 * @throws LedgerError LEDGER_UNSUPPORTED if its feature is not installed; LEDGER_TAMPERED if it does not match the
 * schema of its type, or is an event of another place
 */
export function parseCaseEntry({ text, type, tree_id, seq, log_index }: StoredEntry): Entry {
  const entry = parseJson(text);
  const missing = isJsonObject(entry) ? missingFeature(entry['body']) : null;
  if (missing !== null) throw missingFeatureError(missing);
  if (!isJsonObject(entry) || !isEntryType(type) || !isEntryBody(type, entry['body']))
    throw tamperedEntryError(log_index);
  const { event_id, sequence } = entry['body'] as { readonly event_id?: string; readonly sequence?: number };
  if (type === 'audit_event' && (event_id !== `${tree_id}:${seq}` || sequence !== seq))
    throw tamperedEntryError(log_index);
  // The body was validated against its type above.
  return entry as unknown as Entry;
}

const isEntryType = (type: string): type is EntryType => (entryTypes() as readonly string[]).includes(type);

function parseJson(text: string): Json | null {
  try {
    return parseOwnJson(text) as Json;
  } catch {
    return null;
  }
}
