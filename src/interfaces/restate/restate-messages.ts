// What travels through Restate: ids, hashes, codes and sequence numbers, never content. Each message is limited and
// validated, because any client of the ingress can send one.

import Type, { type Static, type TSchema } from 'typebox';
import { readJson } from '../../core/contract/json.js';
import { ApprovalBallot } from '../../core/contract/run/approval.js';
import { closed, Identifier, Nullable, OneOf, RunId, Sha256, Timestamp } from '../../core/contract/shapes.js';
import { isInstance } from '../../core/contract/validators.js';

/** Limit of one message, in bytes. The longest one has 64 digests. */
export const MESSAGE_BYTES_MAX = 16_384;
/** Limit of a payload, in bytes, whatever the policy allows. */
export const PAYLOAD_BYTES_MAX = 33_554_432;
/** Limit of a response in the exchange, in bytes: its content may be escaped twice. */
export const RESPONSE_BYTES_MAX = 4 * PAYLOAD_BYTES_MAX;
/** Limit of a caller's input id, in characters. */
export const INPUT_ID_CHARS_MAX = 160;
/** Reasons that a cancel can name. A text would be content. */
export const CANCEL_CODES = ['operator', 'timeout', 'no_longer_needed', 'superseded'] as const;

const InputId = Type.String({ pattern: `^[\\x21-\\x7e]{1,${INPUT_ID_CHARS_MAX}}$` });
const reference = (bytesMax: number) =>
  Type.Object({ sha256: Sha256, bytes: Type.Integer({ minimum: 0, maximum: bytesMax }) }, closed);
const PayloadReference = reference(PAYLOAD_BYTES_MAX);
const ResponseReference = reference(RESPONSE_BYTES_MAX);

/** The hash and the length of content in the exchange. */
export type ContentReference = Static<typeof PayloadReference>;

export const SubmitMessage = Type.Object({ run_id: RunId, input_id: InputId, payload: PayloadReference }, closed);
/** Submits the proposal whose payload is in the exchange. */
export type SubmitMessage = Static<typeof SubmitMessage>;

export const VoteMessage = Type.Object(
  {
    run_id: RunId,
    input_id: InputId,
    digests: ApprovalBallot.properties.digests,
    decision: ApprovalBallot.properties.decision,
    actor: Type.String({ minLength: 3, maxLength: 120 }),
    role: Identifier,
  },
  closed,
);
/** A person's vote on requests of a run. */
export type VoteMessage = Static<typeof VoteMessage>;

export const CancelMessage = Type.Object({ run_id: RunId, reason: OneOf(CANCEL_CODES) }, closed);
/** Cancels the tree of an agent run. */
export type CancelMessage = Static<typeof CancelMessage>;

export const RunMessage = Type.Object({ run_id: RunId }, closed);
/** Names a run: for `wake` and `look`. */
export type RunMessage = Static<typeof RunMessage>;

export const SubmitResult = Type.Object(
  {
    run_id: RunId,
    input_id: InputId,
    seq: Type.Integer({ minimum: 0 }),
    outcome: Type.String({ maxLength: 40 }),
    response: ResponseReference,
  },
  closed,
);
/**
 * What a step has become: its seq in the tree, its outcome or, if the run shows no more, its decision, and the
 * reference of its response in the exchange. The same for every submission of one input id.
 */
export type SubmitResult = Static<typeof SubmitResult>;

/** The last step that the virtual object has submitted. */
export const LastStep = Type.Object({ run_id: RunId, input_id: InputId, seq: Type.Integer({ minimum: 0 }) }, closed);
export type LastStep = Static<typeof LastStep>;

export const LookResult = Type.Object(
  {
    run_id: RunId,
    state: Type.String({ maxLength: 40 }),
    reason: Nullable(Type.String({ maxLength: 200 })),
    wake_at: Nullable(Timestamp),
    last: Nullable(LastStep),
  },
  closed,
);
/** The state of a run, the next timer of its tree, and the last step of the virtual object. */
export type LookResult = Static<typeof LookResult>;

/** @returns the message, or null if it is too long, not JSON or not of this schema */
export function parseMessage<T extends TSchema>(schema: T, bytes: Uint8Array): Static<T> | null {
  if (bytes.byteLength > MESSAGE_BYTES_MAX) return null;
  const value = readJson(bytes);
  return isInstance(schema, value) ? value : null;
}
