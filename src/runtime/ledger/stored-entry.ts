import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import { parseOwnJson } from '../../core/contract/json.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { missingFeature } from '../../core/contract/run/feature-vocabulary.js';
import { isEntryBody } from '../../core/contract/validators.js';
import { LedgerError } from '../../core/errors.js';
import type { TreeEntry } from '../../engine/ports/ledger/ledger-store.js';

/**
 * Parses a stored entry. It does not check whether the entry is genuine: `verify` and `replay` do.
 * @throws LedgerError LEDGER_TAMPERED for an invalid entry
 */
export function parseStoredEntry(stored: TreeEntry): Entry {
  const { text, type } = stored;
  try {
    const entry = parseOwnJson(text) as Entry;
    // What a feature has recorded that is not loaded here has no schema here.
    if (entry.type === type && (isEntryBody(entry.type, entry.body) || missingFeature(entry.body) !== null))
      return entry;
  } catch (cause) {
    throw invalidEntryError(stored, cause);
  }
  throw invalidEntryError(stored);
}

/** Whether an entry can change the record of a run. */
export const isRunEntry = ({ type }: TreeEntry): boolean => type === 'run_created' || type === 'audit_event';

const invalidEntryError = ({ log_index, tree_id, seq }: TreeEntry, cause?: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `${log_index === null ? nameInTree(tree_id, seq) : nameInLedger(log_index)} is not a valid entry: run \`turnpike ledger verify\``,
    cause,
  });
