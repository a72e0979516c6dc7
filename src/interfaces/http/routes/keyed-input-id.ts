import { canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { Principal } from '../../../engine/ports/token-book.js';

/**
 * The input id of a proposal with an idempotency key. The ledger keeps every key permanently: the same key of the same
 * principal in the same run is the same input, and gets the recorded response.
 */
export const keyedInputId = (
  { actor, role }: Pick<Principal, 'actor' | 'role'>,
  { run_id, key }: { readonly run_id: string; readonly key: string },
): string => `http:${sha256(canonicalJson([actor, role, run_id, key]))}`;
