// The public keys of an issuer, by their ids.
//
// Invariants:
//   K1. A key counts only if the newest set that was fetched has it. An unknown id causes one fetch, and at most one
//       fetch starts in `cooldownMs`, whatever tokens arrive.
//   K2. Keys older than `freshMs` are fetched again before they are used. If the issuer cannot be reached, they count
//       until `staleMs`, and no longer: an attacker who keeps the issuer away must not keep a withdrawn key alive.
//   K3. A set that exceeds a limit is refused as a whole, as is a set that has no usable key.

import type { Clock } from '../../../engine/ports/clock.js';
import type { KeyAges, KeysState } from '../../../engine/ports/identity-provider.js';
import type { Log } from '../../../engine/ports/log.js';
import { fetchJson } from '../../../system/network/json-fetch.js';
import { readPublicKey, type PublicKey } from './signed-token.js';

export const KEYS_BYTES_MAX = 262_144;
export const KEYS_MAX = 64;

export const KEY_AGES: KeyAges = { freshMs: 300_000, staleMs: 3_600_000, cooldownMs: 30_000 };

type KeyLookup = { readonly key: PublicKey } | { readonly problem: 'key_unknown' | 'unavailable' };

interface ProviderKeysOptions extends KeyAges {
  readonly issuer: string;
  /** The address of the key set, which may itself have to be found out. */
  readonly locate: () => Promise<{ readonly url: string } | { readonly failed: string }>;
  readonly clock: Clock;
  readonly log: Log;
}

export class ProviderKeys {
  readonly #options: ProviderKeysOptions;
  #keys: ReadonlyMap<string, PublicKey> = new Map();
  /** When the newest set was fetched, and when the last fetch began, in milliseconds since the epoch. */
  #fetchedAt = -Infinity;
  #triedAt = -Infinity;
  #isLastTryFailed = false;
  #fetching: Promise<void> | null = null;

  constructor(options: ProviderKeysOptions) {
    this.#options = options;
  }

  async find(kid: string): Promise<KeyLookup> {
    const isKnown = this.#keys.has(kid);
    if (!isKnown || this.state !== 'fresh') await this.#refresh();
    const key = this.state === 'absent' ? undefined : this.#keys.get(kid);
    if (key !== undefined) return { key };
    return { problem: this.state === 'absent' || this.#isLastTryFailed ? 'unavailable' : 'key_unknown' };
  }

  /** Whether the newest set has the key. Old keys are fetched again in the background. */
  has(kid: string, sha256: string): boolean {
    const { state } = this;
    if (state !== 'fresh') void this.#refresh();
    return state !== 'absent' && this.#keys.get(kid)?.sha256 === sha256;
  }

  /** The same, after old keys were fetched again. */
  async confirm(kid: string, sha256: string): Promise<boolean> {
    if (this.state !== 'fresh') await this.#refresh();
    return this.has(kid, sha256);
  }

  /** Whether there are no keys because the issuer could not be reached. */
  get isFailing(): boolean {
    return this.state === 'absent' && this.#isLastTryFailed;
  }

  /** Fetches missing keys in the background, as a token would: a process that is not ready may get no token. */
  retry(): void {
    if (this.isFailing) void this.#refresh();
  }

  get state(): KeysState {
    const { clock, freshMs, staleMs } = this.#options;
    const age = clock.now() - this.#fetchedAt;
    return age < freshMs ? 'fresh' : age < staleMs ? 'stale' : 'absent';
  }

  /** Never throws. */
  #refresh(): Promise<void> {
    if (this.#fetching !== null) return this.#fetching;
    const now = this.#options.clock.now();
    if (now - this.#triedAt < this.#options.cooldownMs) return Promise.resolve();
    this.#triedAt = now;
    this.#fetching = this.#fetch().finally(() => (this.#fetching = null));
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    const { issuer, clock, log } = this.#options;
    const found = await this.#read();
    this.#isLastTryFailed = 'failed' in found;
    if ('failed' in found) {
      log.error('the keys of an identity provider could not be fetched', { issuer, reason: found.failed });
      return;
    }
    this.#keys = found.keys;
    this.#fetchedAt = clock.now();
  }

  async #read(): Promise<{ readonly keys: ReadonlyMap<string, PublicKey> } | { readonly failed: string }> {
    const located = await this.#options.locate();
    if ('failed' in located) return located;
    const answer = await fetchJson(located.url, { bytesMax: KEYS_BYTES_MAX });
    if ('failed' in answer) return { failed: `${located.url}: ${answer.failed}` };
    const listed = answer.json['keys'];
    if (!Array.isArray(listed)) return { failed: `${located.url}: it is not a set of keys` };
    if (listed.length > KEYS_MAX) return { failed: `${located.url}: it has more than ${KEYS_MAX} keys` };
    const keys = await indexKeys(listed);
    return keys.size === 0 ? { failed: `${located.url}: it has no key for signatures` } : { keys };
  }
}

/** Two keys with one id make that id ambiguous: neither counts. */
async function indexKeys(listed: readonly unknown[]): Promise<ReadonlyMap<string, PublicKey>> {
  const keys = new Map<string, PublicKey | null>();
  for (const value of listed) {
    const key = await readPublicKey(value);
    if (key !== null) keys.set(key.kid, keys.has(key.kid) ? null : key);
  }
  return new Map([...keys].flatMap(([kid, key]) => (key === null ? [] : [[kid, key] as const])));
}
