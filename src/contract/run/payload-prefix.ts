// C80: a payload over the limit of its policy is refused whatever it holds, so storing it whole would let an agent fill
// the disk with refusals. The ledger holds its hash, its length and its first bytes.

import { artifactRef, type Artifact, type ArtifactRef } from '../artifact-ref.js';
import type { ProposalInput } from './input.js';

/** How many bytes of a payload over the limit are stored. */
export const PAYLOAD_PREFIX_BYTES = 1_024;

/** The first bytes of a payload, as the content that is stored in its place. */
export const createPayloadPrefix = ({ case_id, bytes }: Artifact): Artifact => ({
  kind: 'raw_payload_prefix',
  case_id,
  bytes: bytes.slice(0, PAYLOAD_PREFIX_BYTES),
});

/** What a proposal input brings as its payload: all of it, or its prefix. */
export const storedPayloadRef = ({ payload, prefix }: ProposalInput): ArtifactRef => prefix ?? payload;

/**
 * Whether an input says of its payload what `limit` allows: a prefix stands for a payload that is over the limit, and
 * has the length that the rule gives it.
 */
export function isPrefixValid({ payload, prefix }: ProposalInput, limit: number): boolean {
  if (prefix === undefined) return true;
  const { artifact_kind, byte_size, case_id } = prefix;
  return (
    artifact_kind === 'raw_payload_prefix' &&
    case_id === payload.case_id &&
    (payload.byte_size ?? 0) > limit &&
    byte_size === Math.min(PAYLOAD_PREFIX_BYTES, payload.byte_size ?? 0)
  );
}

/** The input's member for a payload: absent where the payload is stored whole. */
export const prefixMember = (prefix: Artifact | null): { readonly prefix?: ArtifactRef } =>
  prefix === null ? {} : { prefix: artifactRef(prefix) };
