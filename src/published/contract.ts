// The vocabulary of the contract, published as `turnpike/contract`: that of core, and what features add to it.

import { entryTypes, type EntryType } from '../core/contract/run/entry.js';
import { FEATURE_ENTRY_TYPES } from '../features/feature-entry-types.js';

export * from '../core/contract/index.js';

/** The types of ledger entries. */
export const ENTRY_TYPES: readonly EntryType[] = [...entryTypes(), ...FEATURE_ENTRY_TYPES];
