import type { Reply } from '../kernel/decision.js';

interface PendingResponse {
  readonly resolve: (response: string | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The responses that submitters of this process wait for. A later decision may have one: about the result of an effect,
 * about a timer, or of another worker. A failure rejects them all, and those that are added after it, until the next
 * epoch. So recovery finds none.
 */
export class PendingResponses {
  /** By run, then by input. */
  readonly #runs = new Map<string, Map<string, PendingResponse>>();

  /** What rejected all; null while the engine works. */
  #failure: { readonly error: unknown } | null = null;

  /** @returns the response; null if the run ends without one */
  add(run_id: string, input_id: string): Promise<string | null> {
    const response = new Promise<string | null>((resolve, reject) => {
      const pending = { resolve, reject };
      if (this.#failure !== null) {
        pending.reject(this.#failure.error);
        return;
      }
      const others = this.#runs.get(run_id);
      if (others === undefined) this.#runs.set(run_id, new Map([[input_id, pending]]));
      else others.set(input_id, pending);
    });
    response.catch(() => undefined);
    return response;
  }

  resolve({ run_id, input_id, response }: Reply): void {
    const pending = this.#runs.get(run_id);
    pending?.get(input_id)?.resolve(response);
    pending?.delete(input_id);
    if (pending?.size === 0) this.#runs.delete(run_id);
  }

  endRun(run_id: string): void {
    for (const { resolve } of this.#runs.get(run_id)?.values() ?? []) resolve(null);
    this.#runs.delete(run_id);
  }

  rejectAll(error: unknown): void {
    this.#failure = { error };
    for (const pending of this.#runs.values()) for (const { reject } of pending.values()) reject(error);
    this.#runs.clear();
  }
  /** Begins an epoch: responses can be added again. */
  accept(): void {
    this.#failure = null;
  }
}
