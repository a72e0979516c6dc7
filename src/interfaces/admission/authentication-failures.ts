// Failed authentications by client address. An address over its limit gets another refusal, but a valid token is still
// accepted: an attacker must not lock out the clients behind the same address.

import { CostBucket } from './cost-bucket.js';
import type { AdmissionLimits } from './admission-limits.js';
import { createLruMap } from '../../system/lru-map.js';

/** Limit of the stored addresses; the one that failed longest ago is evicted first. */
const ADDRESSES_MAX = 4_096;

export class AuthenticationFailures {
  readonly #limits: Pick<AdmissionLimits, 'failures' | 'failuresPerSecond'>;
  readonly #addresses = createLruMap<CostBucket>(ADDRESSES_MAX);

  constructor(limits: Pick<AdmissionLimits, 'failures' | 'failuresPerSecond'>) {
    this.#limits = limits;
  }

  /** Records a failure. @returns milliseconds to wait if the address was over its limit; else 0 */
  record(address: string, now: number): number {
    const { failures, failuresPerSecond } = this.#limits;
    const source = sourceOf(address);
    const bucket = this.#addresses.get(source) ?? new CostBucket(failuresPerSecond, failures, now);
    // A new place behind all others: LruMap leaves an entry in its place below half of the limit.
    this.#addresses.delete(source);
    this.#addresses.set(source, bucket);
    const wait = bucket.waitFor(1, now);
    if (wait === 0) bucket.spend(1, now);
    return wait;
  }
}

/** The address range of one client: an IPv4 address, or the 64-bit prefix of an IPv6 address. */
function sourceOf(address: string): string {
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = address.split('::', 2);
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = address.includes('::')
    ? Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
    : [];
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}
