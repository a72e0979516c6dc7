// The types of ledger entries that features add to `turnpike/contract`. They are apart from the schemas, which that
// entry of the package does not load. To remove a feature that is listed here, remove its entries here too.

import type { EntryType } from '../core/contract/run/entry.js';

export const FEATURE_ENTRY_TYPES: readonly EntryType[] = ['session_event'];
