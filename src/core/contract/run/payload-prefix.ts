// C80: a payload over the limit of its policy is rejected whatever it contains, and storing it whole would let an agent
// fill the disk with rejected payloads. The ledger stores its hash, its length and its first bytes.

import { artifactRef, type Artifact, type ArtifactRef } from '../artifact-ref.js';
import type { ProposalInput } from './input.js';

/** Number of bytes that are stored of a payload over the limit. */
export const PAYLOAD_PREFIX_BYTES = 1_024;

/** The prefix of a payload, as the artifact that is stored in its place. */
export const createPayloadPrefix = ({ case_id, bytes }: Artifact): Artifact => ({
  kind: 'raw_payload_prefix',
  case_id,
  bytes: bytes.slice(0, PAYLOAD_PREFIX_BYTES),
});

/** The payload artifact of a proposal input: the whole payload, or its prefix. */
export const storedPayloadRef = ({ payload, prefix }: ProposalInput): ArtifactRef => prefix ?? payload;

/**
 * Whether the prefix of an input is valid under `limit`: only a payload over the limit has one, of the length that the
 * rule defines.
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

/** The input's `prefix` member: absent if the payload is stored whole. */
export const prefixMember = (prefix: Artifact | null): { readonly prefix?: ArtifactRef } =>
  prefix === null ? {} : { prefix: artifactRef(prefix) };
