// identities.yaml while a service runs: read again once a second, and refused as a whole if it is not valid and pinned.

import type { IdentitiesPolicy } from '../../../core/contract/policy/identities.js';
import { sha256 } from '../../../core/contract/hash.js';
import { CodedError } from '../../../core/errors.js';
import { loadIdentities } from '../../../home/policy/check-identities.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { IdentitiesSource } from '../../../engine/ports/policy-sources.js';
import type { Log } from '../../../engine/ports/log.js';

const CACHE_MS = 1_000;

/** The mappings in force, with the hash of their file; or why they are missing. */
export type IdentityPolicyState =
  { readonly policy: IdentitiesPolicy; readonly sha256: string } | { readonly failed: string };

interface IdentityPolicyOptions {
  readonly source: IdentitiesSource;
  readonly clock: Clock;
  readonly log: Log;
}

export class IdentityPolicy {
  readonly #options: IdentityPolicyOptions;
  #state: IdentityPolicyState = { failed: 'identities.yaml was not read yet' };
  #lastValid: IdentitiesPolicy | null = null;
  #readAt = -Infinity;
  #reading: Promise<IdentityPolicyState> | null = null;

  constructor(options: IdentityPolicyOptions) {
    this.#options = options;
  }

  /** Null if the file has to be read first. */
  get latest(): IdentityPolicyState | null {
    return this.#options.clock.now() - this.#readAt < CACHE_MS ? this.#state : null;
  }

  /** The state that was read last, however long ago. */
  get known(): IdentityPolicyState {
    return this.#state;
  }

  /**
   * The newest mappings that were valid and pinned. While the file is not, the persons behind tokens remain: without
   * them, each token of a person would count as a person of its own.
   */
  get lastValid(): IdentitiesPolicy | null {
    return this.#lastValid;
  }

  /** Never throws. */
  async read(): Promise<IdentityPolicyState> {
    const { latest } = this;
    if (latest !== null) return latest;
    this.#reading ??= this.#load().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #load(): Promise<IdentityPolicyState> {
    const { clock, log } = this.#options;
    const readAt = clock.now();
    const state = await this.#loadFile();
    if ('failed' in state && !('failed' in this.#state && this.#state.failed === state.failed)) {
      log.error('no caller is identified by an issuer until identities.yaml is right', { reason: state.failed });
    }
    this.#state = state;
    if ('policy' in state) this.#lastValid = state.policy;
    this.#readAt = readAt;
    return state;
  }

  async #loadFile(): Promise<IdentityPolicyState> {
    try {
      const { path, bytes, pin } = await this.#options.source.load();
      if ('problem' in pin) return { failed: `${path} is not pinned (${pin.problem}): run \`turnpike policy pin\`` };
      const digest = sha256(bytes);
      // Parsing an unchanged file once a second would be work for nothing.
      if ('policy' in this.#state && this.#state.sha256 === digest) return this.#state;
      return { policy: loadIdentities({ path, bytes }, null), sha256: digest };
    } catch (error) {
      if (error instanceof CodedError) return { failed: error.message };
      this.#options.log.error('identities.yaml could not be read', { error });
      return { failed: 'identities.yaml could not be read' };
    }
  }
}
