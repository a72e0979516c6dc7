// Content of the ledger, given to somebody. Reads are audited as acts are: before the bytes go out, who was given them
// stands in the ledger, in the tree that holds them.

import { isWithheld } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import type { EmbeddedEngine } from '../engine/embedded-engine.js';
import type { NewInput } from '../engine/tree-engine.js';
import { RunError } from '../errors.js';
import type { Ids } from '../ports/ids.js';
import type { LedgerStore, StoredEntry } from '../ports/ledger-store.js';
import { roleOf } from './high-risk/answers.js';
import { actorOf } from './open-request.js';

/** What somebody asks for: content that entry `log_index` brought. */
export interface ContentRequest {
  readonly log_index: number;
  readonly sha256: string;
  readonly actor: string;
  readonly role: string;
}

export interface ContentGround {
  readonly engine: Pick<EmbeddedEngine, 'submit'>;
  readonly store: Pick<LedgerStore, 'log' | 'head' | 'artifactsOf'>;
  readonly ids: Ids;
}

/** The platform's own, which tells nothing of a case: its reading is not audited. */
const OF_PLATFORM: ReadonlySet<string> = new Set(['policy', 'machines']);

/**
 * Gives content, and records who was given it.
 * @returns null where the entry brought none of this hash, or it is withheld
 * @throws LedgerError LEDGER_ARCHIVED; UsageError for what is no actor or role
 */
export async function readContent(ground: ContentGround, request: ContentRequest): Promise<Uint8Array | null> {
  const { engine, store, ids } = ground;
  const { log_index, actor, role } = request;
  const stored = await entryAt(store, log_index);
  if (stored === null) return null;
  const brought = (await store.artifactsOf(stored)).filter((artifact) => !isWithheld(artifact));
  const artifact = brought.find((one) => 'bytes' in one && sha256(one.bytes) === request.sha256);
  if (artifact === undefined || !('bytes' in artifact)) return null;
  if (artifact.case_id === null && OF_PLATFORM.has(artifact.kind)) return artifact.bytes;
  const { body } = JSON.parse(stored.text) as { readonly body: { readonly run_id?: string } };
  const input: NewInput = {
    kind: 'access',
    run_id: body.run_id ?? stored.tree_id,
    input_id: ids.draw('inp_'),
    entry: stored.seq,
    artifact_kind: artifact.kind,
    hash_sha256: request.sha256,
    actor: { actor_type: 'human', actor_id: actorOf(actor) },
    role_id: roleOf(role),
  };
  const { refused } = await engine.submit(stored.tree_id, { input, materials: [], external: false });
  if (!refused) return artifact.bytes;
  throw new RunError({ code: 'INVALID_STATE_TRANSITION', message: `nobody may read what ${stored.tree_id} holds` });
}

async function entryAt(store: ContentGround['store'], log_index: number): Promise<StoredEntry | null> {
  if (log_index >= (await store.head()).size) return null;
  for await (const stored of store.log(log_index)) return stored;
  return null;
}
