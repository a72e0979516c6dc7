import { artifactRef, type StoredArtifact } from '../../contract/artifact-ref.js';
import { isJsonObject } from '../../contract/json.js';
import type { LedgerFinding } from './ledger-problem.js';

/**
 * Compares the content that came with an entry with the references in its body. Two are the same if hash, size, kind
 * and case are equal.
 * @returns findings for content without a reference and, in an input, for references without content: a fold needs all
 * content of an input
 */
export function checkEntryArtifacts(
  type: string,
  body: unknown,
  attached: readonly StoredArtifact[],
): readonly LedgerFinding[] {
  const referredKeys = new Set(collectRefKeys(body));
  const attachedKeys = new Set(attached.map((artifact) => keyOf({ ...artifactRef(artifact) })));
  const findings: LedgerFinding[] = [];
  for (const key of attachedKeys) {
    if (!referredKeys.has(key)) {
      findings.push({ rule: 'artifact.unreferenced', message: `the entry does not refer to its content ${key}` });
    }
  }
  for (const key of type === 'input' ? collectRefKeys(withoutEarlierContent(body)) : []) {
    if (!attachedKeys.has(key))
      findings.push({ rule: 'artifact.missing', message: `the input lacks its content ${key}` });
  }
  return findings;
}

/**
 * The sources of a promotion came with earlier inputs, and of a payload over the limit only a prefix comes (C80). All
 * other content that an input refers to comes with it.
 */
function withoutEarlierContent(body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  if (body['kind'] === 'start_run') return { ...body, inputs: [] };
  return body['kind'] === 'proposal' && body['prefix'] !== undefined ? { ...body, payload: null } : body;
}

/** Anything shaped like an artifact_ref, at any depth: the schemas of the bodies allow it in many places. */
function* collectRefKeys(value: unknown): Iterable<string> {
  if (Array.isArray(value)) {
    for (const item of value) yield* collectRefKeys(item);
  } else if (isJsonObject(value)) {
    if (isReferenceLike(value)) yield keyOf(value);
    else for (const member of Object.values(value)) yield* collectRefKeys(member);
  }
}

interface ReferenceLike {
  readonly hash_sha256: string;
  readonly artifact_kind: string;
  readonly byte_size?: unknown;
  readonly case_id?: unknown;
}

const isReferenceLike = (value: object): value is ReferenceLike =>
  'artifact_id' in value &&
  'artifact_kind' in value &&
  'hash_sha256' in value &&
  typeof value.artifact_kind === 'string' &&
  typeof value.hash_sha256 === 'string';

const keyOf = ({ hash_sha256, artifact_kind, byte_size, case_id }: ReferenceLike): string =>
  JSON.stringify([hash_sha256.toLowerCase(), artifact_kind, byte_size ?? null, case_id ?? null]);
