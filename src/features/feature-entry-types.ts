// The types of ledger entries that features add to `turnpike/contract`. They are apart from the schemas, which that
// entry of the package does not load. To remove a feature that is listed here, remove its name here too.

import type { EntryType } from '../core/contract/run/entry.js';
import { SESSION_ENTRY_TYPES } from './sessions/contract/session-entry-types.js';

export const FEATURE_ENTRY_TYPES: readonly EntryType[] = [...SESSION_ENTRY_TYPES];
