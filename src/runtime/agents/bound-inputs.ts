// The id of a request is bound to the payload with which it was first used: the same id with another payload is a
// conflict, at whatever entrance it arrives and after any restart. The conflict gets no recorded response, executes
// nothing, and is recorded as a proposal for a tool that no policy can allow.

import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { nameUuid } from '../name-uuid.js';
import type { InputKind } from '../../core/contract/run/input.js';
import type { Submission, TreeEngine } from '../../engine/tree-engine.js';
import { idempotencyConflict } from '../../core/errors.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { createProposalPrompt } from './caller-input.js';
import type { SubmitOptions } from './agent-run.js';
import { toolCallPayload } from './tool-call-payload.js';

/** No service can register this tool, because its name has a hyphen. */
const CONFLICT_TOOL = 'idempotency-conflict';
/** The beginning of the id of an input that records a conflict. */
const CONFLICT_INPUT = 'conflict:';
/** How much of the refused payload the record has as text. */
const GIVEN_CHARS_MAX = 8_192;

/** A request whose id was used before. */
interface RepeatedRequest {
  readonly run_id: string;
  /** The place of the first request with this id in its tree. */
  readonly seq: number;
  readonly bytes: Uint8Array;
}

interface RecordingEnvironment {
  readonly engine: Pick<TreeEngine, 'peek' | 'submit'>;
  readonly store: Pick<LedgerStore, 'tree'>;
}

type RequestOptions = Pick<SubmitOptions, 'inputId' | 'payloadSha256' | 'hookEvent'>;

/**
 * Returns if the request has the payload of the first one with its id. Else it records the conflict, once.
 * @throws RunError IDEMPOTENCY_CONFLICT
 */
export async function requireBoundPayload(
  { engine, store }: RecordingEnvironment,
  request: RepeatedRequest,
  options: RequestOptions,
): Promise<void> {
  const tree_id = rootRunIdOf(request.run_id);
  const bound = await boundPayload(store, tree_id, request.seq);
  if (bound === (options.payloadSha256 ?? sha256(request.bytes))) return;
  await recordConflict(engine, request, { bound, ...options });
  throw idempotencyConflict();
}

/** Records that an id was used again with another input: once for each of these inputs. */
export async function recordConflict(
  engine: RecordingEnvironment['engine'],
  request: Pick<RepeatedRequest, 'run_id' | 'bytes'>,
  options: RequestOptions & { readonly bound: string | null },
): Promise<void> {
  const tree_id = rootRunIdOf(request.run_id);
  const case_id = (await engine.peek(tree_id))?.case_id ?? null;
  const conflict = createConflictInput(request, { case_id, ...options });
  if (conflict !== null) await engine.submit(tree_id, { ...conflict, rememberInputId: true, checked: true });
}

/** The SHA-256 of the payload of the proposal at `seq`; null if that entry is another input. */
async function boundPayload(store: Pick<LedgerStore, 'tree'>, tree_id: string, seq: number): Promise<string | null> {
  for await (const { text } of store.tree(tree_id, seq)) {
    const { type, body } = parseOwnJson(text) as RecordedProposal;
    return type === 'input' && body.kind === 'proposal' ? body.payload.hash_sha256 : null;
  }
  return null;
}

interface RecordedProposal {
  readonly type: string;
  readonly body: { readonly kind: InputKind; readonly payload: { readonly hash_sha256: string } };
}

/** The input that records a conflict; null for the id of such a record. */
function createConflictInput(
  { run_id, bytes }: Pick<RepeatedRequest, 'run_id' | 'bytes'>,
  {
    bound,
    case_id,
    inputId = '',
    ...event
  }: RequestOptions & { readonly bound: string | null; readonly case_id: string | null },
): Pick<Submission, 'input' | 'materials'> | null {
  if (inputId.startsWith(CONFLICT_INPUT)) return null;
  const [id, given] = [sha256(inputId), sha256(bytes)];
  const name = canonicalJson(['conflict', run_id, id, given]);
  const text = Buffer.from(bytes).toString('utf8').slice(0, GIVEN_CHARS_MAX).toWellFormed();
  const input = { input_id_sha256: id, recorded_sha256: bound, given_sha256: given, given: text };
  const payload: Artifact = {
    kind: 'raw_payload',
    case_id,
    bytes: toolCallPayload(nameUuid(name), CONFLICT_TOOL, input),
  };
  const prompt = createProposalPrompt(event, case_id);
  return {
    input: {
      kind: 'proposal',
      run_id,
      input_id: `${CONFLICT_INPUT}${sha256(name)}`,
      payload: artifactRef(payload),
      tokens: null,
      ...prompt.refers,
    },
    materials: [payload, ...prompt.materials],
  };
}
