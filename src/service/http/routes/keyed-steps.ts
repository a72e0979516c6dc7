// Proposals with an idempotency key. The ledger keeps every key permanently: the same key of the same principal in the
// same run is the same input, and gets the recorded response. This class holds only the steps that are not yet
// recorded.

import { canonicalJson } from '../../../contract/canonical-json.js';
import { sha256 } from '../../../contract/hash.js';
import type { Principal } from '../../../ports/token-book.js';
import type { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../runtime/ledger/ledger-reader.js';
import { RefusalError } from '../../problems.js';

interface StepInFlight {
  readonly content: string;
  count: number;
}

export class KeyedSteps {
  readonly #ledger: Pick<LedgerReader, 'inputContent'>;
  readonly #inFlight = new Map<string, StepInFlight>();

  constructor(ledger: Pick<LedgerReader, 'inputContent'>) {
    this.#ledger = ledger;
  }

  /** Submits a step under its key. @throws RefusalError IDEMPOTENCY_CONFLICT if the key was used for another body */
  async submit<Response>(
    step: { readonly run_id: string; readonly key: string; readonly principal: Principal; readonly body: Uint8Array },
    respond: (inputId: string) => Promise<Response>,
  ): Promise<Response> {
    const { run_id, key, principal, body } = step;
    const inputId = `http:${sha256(canonicalJson([principal.actor, principal.role, run_id, key]))}`;
    const content = sha256(body);
    const earlier = this.#inFlight.get(inputId);
    if (earlier !== undefined && earlier.content !== content) throw new RefusalError('IDEMPOTENCY_CONFLICT');
    const current = earlier ?? { content, count: 0 };
    current.count += 1;
    // Set before the first await, so that no other body with this key gets through.
    this.#inFlight.set(inputId, current);
    try {
      const recorded = await this.#ledger.inputContent(rootRunIdOf(run_id), inputId);
      if (recorded !== null && recorded !== content) throw new RefusalError('IDEMPOTENCY_CONFLICT');
      return await respond(inputId);
    } finally {
      current.count -= 1;
      if (current.count === 0) this.#inFlight.delete(inputId);
    }
  }
}
