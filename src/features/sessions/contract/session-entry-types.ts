import type { EntryType } from '../../../core/contract/run/entry.js';

/** The types of ledger entries of sessions. */
export const SESSION_ENTRY_TYPES: readonly EntryType[] = ['session_event'];
