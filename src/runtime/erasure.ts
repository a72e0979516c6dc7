// Erasure (D14): the content of a case is destroyed, and what the ledger proves of it stays.

import { CaseId } from '../contract/shapes.js';
import type { EmbeddedEngine } from '../engine/embedded-engine.js';
import { UsageError } from '../errors.js';
import type { HistoryCache } from '../ports/history-cache.js';
import type { Erased } from '../ports/ledger-store.js';
import { actorOf, checked } from './open-request.js';

export interface EraseOptions {
  /** The case whose content is destroyed. None of its run trees may live. */
  readonly case: string;
  /** Who wants it: 3 to 120 characters, which stand in the record of the erasure. */
  readonly actor: string;
}

/** @throws RunError CASE_IN_USE; UsageError; LedgerError: then it is done in part, or not: ask again */
export async function eraseCase(
  engine: EmbeddedEngine,
  history: HistoryCache | null,
  options: EraseOptions,
): Promise<Erased> {
  const case_id = checked('case', CaseId, options.case);
  const actor = actorOf(options.actor);
  if (/\p{Cc}/u.test(actor)) throw new UsageError({ code: 'USAGE', message: 'actor: no control characters' });
  const erased = await engine.erase(case_id, actor);
  // It remembers trees as they stood, with what they held; it is made again from what can still be folded.
  await history?.clear();
  return erased;
}
