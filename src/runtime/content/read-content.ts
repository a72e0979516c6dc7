// Lets a person read content of the ledger. Readings are audited like actions: the tree of the content records the
// reading before the bytes are returned.

import { parseOwnJson } from '../../core/contract/json.js';
import { artifactRef, isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { RunError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { LedgerStore, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { ApprovedRequest } from '../ledger/pending-approvals.js';
import type { LedgerReader } from '../ledger/ledger-reader.js';
import { validateActor, validateRole } from '../agents/caller-input.js';
import { OBSERVERS } from './audience.js';
import { ContentReader } from './content-reader.js';

/** The content of entry `log_index` that a person requests. */
export interface ContentRequest {
  readonly log_index: number;
  readonly sha256: string;
  readonly actor: string;
  readonly role: string;
}

/** A pending approval request, for a person who may vote on it. */
export interface ReadRequestOptions {
  readonly run: string;
  readonly digest: string;
  readonly actor: string;
  readonly role: string;
}

export interface ContentEnvironment {
  readonly engine: Pick<TreeEngine, 'submit'>;
  readonly store: Pick<LedgerStore, 'log' | 'head' | 'tree' | 'artifactsOf'>;
  readonly ids: Ids;
}

/** Content of the platform itself, which contains no data of a case: reading it is not audited. */
const PLATFORM_KINDS: ReadonlySet<string> = new Set(['policy', 'machines']);

/**
 * Records the reading and returns the content.
 * @returns null if the entry has no content of this hash, it was erased, or its lane withholds it
 * @throws LedgerError LEDGER_ARCHIVED
 * @throws UsageError for an invalid actor or role
 */
export async function readContent(
  environment: ContentEnvironment,
  request: ContentRequest,
): Promise<Uint8Array | null> {
  const found = await findArtifact(environment, request);
  if (found === null || isWithheld(found.artifact)) return null;
  await recordAccess(environment, request, found);
  return found.artifact.bytes;
}

/**
 * Records a reading, for code that has read the content for a narrower audience than everyone.
 * @returns whether the entry has content of this hash, withheld or not, that was not erased
 * @throws like `readContent`
 */
export async function recordReading(environment: ContentEnvironment, request: ContentRequest): Promise<boolean> {
  const found = await findArtifact(environment, request);
  if (found === null || (isWithheld(found.artifact) && found.artifact.withheld === 'erased')) return false;
  await recordAccess(environment, request, found);
  return true;
}

/**
 * Records the reading and returns the request that a person may approve. If a lane withholds it, only a person whose
 * vote on it could count gets it.
 * @returns null if it is no longer pending, or this person may not see it
 */
export async function readRequest(
  environment: ContentEnvironment & { readonly reader: LedgerReader; readonly clock: Clock },
  { run: run_id, digest, actor, role }: ReadRequestOptions,
): Promise<ApprovedRequest | null> {
  const now = new Date(environment.clock.now()).toISOString();
  const { approval, source: content = null } =
    (await environment.reader.approval({ run_id, digest }, now, { actor, role })) ?? {};
  if (approval?.request == null || content === null) return null;
  return (await recordReading(environment, { ...content, actor, role })) ? approval.request : null;
}

interface FoundArtifact {
  readonly stored: StoredEntry;
  /** In the form that everyone may see. */
  readonly artifact: StoredArtifact;
}

async function findArtifact(
  { store }: ContentEnvironment,
  { log_index, sha256 }: ContentRequest,
): Promise<FoundArtifact | null> {
  const stored = await entryAt(store, log_index);
  if (stored === null) return null;
  const content = await new ContentReader(store).read(stored, OBSERVERS);
  const artifact = content.find((one) => artifactRef(one).hash_sha256 === sha256);
  return artifact === undefined ? null : { stored, artifact };
}

async function recordAccess(
  { engine, ids }: ContentEnvironment,
  { actor, role, sha256 }: ContentRequest,
  { stored, artifact }: FoundArtifact,
): Promise<void> {
  if (artifact.case_id === null && PLATFORM_KINDS.has(artifact.kind)) return;
  const { body } = parseOwnJson(stored.text) as { readonly body: { readonly run_id?: string } };
  const input: NewInput = {
    kind: 'access',
    run_id: body.run_id ?? stored.tree_id,
    input_id: ids.draw('inp_'),
    entry: stored.seq,
    artifact_kind: artifact.kind,
    hash_sha256: sha256,
    actor: { actor_type: 'human', actor_id: validateActor(actor) },
    role_id: validateRole(role),
  };
  const { refused } = await engine.submit(stored.tree_id, { input, materials: [], rememberInputId: false });
  if (!refused) return;
  const message = `the run tree ${stored.tree_id} does not record readings, so its content is not shown`;
  throw new RunError({ code: 'INVALID_STATE_TRANSITION', message });
}

async function entryAt(store: ContentEnvironment['store'], log_index: number): Promise<StoredEntry | null> {
  if (log_index >= (await store.head()).size) return null;
  for await (const stored of store.log(log_index)) return stored;
  return null;
}
