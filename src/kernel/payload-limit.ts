import type { Artifact } from '../core/contract/artifact-ref.js';
import type { ProposalInput } from '../core/contract/run/entry.js';
import { isPrefixValid, createPayloadPrefix } from '../core/contract/run/payload-prefix.js';
import type { Policy } from '../core/policy/policy.js';

type PayloadPolicy = Pick<Policy, 'limits'> | null;

/**
 * C80. @returns the prefix that a tree under `policy` stores in place of this payload; null if it stores the whole
 *      payload
 */
export function storedPrefix(payload: Artifact | undefined, policy: PayloadPolicy): Artifact | null {
  if (policy === null || payload === undefined) return null;
  return payload.bytes.byteLength > policy.limits.payload_bytes_max ? createPayloadPrefix(payload) : null;
}

/** Whether a proposal may carry a prefix in place of its payload. */
export const canHavePrefix = (proposal: ProposalInput, policy: PayloadPolicy): boolean =>
  policy !== null && isPrefixValid(proposal, policy.limits.payload_bytes_max);
