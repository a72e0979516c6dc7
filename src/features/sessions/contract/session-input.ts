// The inputs of a session as the ledger records them: the one that opens its tree, and its commands.

import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import { namedActorProperties } from '../../../core/contract/person.js';
import { OverlayFact } from '../../../core/contract/policy/overlay.js';
import { envelope, OpenInput } from '../../../core/contract/run/input.js';
import { EXPOSURES } from '../../../core/contract/run/response.js';
import { Actor, closed, Identifier, Nullable, OneOf, RunId } from '../../../core/contract/shapes.js';
import { SESSION_ROLES, SessionSettings } from './session.js';
import { SessionCommand, SessionVouch } from './session-command.js';

/** The caller of a session and its role. */
const RecordedCaller = Type.Object({ actor: Actor, role: OneOf(SESSION_ROLES) }, closed);

const feature = Type.Literal('sessions');

/** The first input of a session's tree (S3). */
export const OpenSessionInput = Type.Object(
  {
    ...OpenInput.properties,
    kind: Type.Literal('open_session'),
    feature,
    /** The spec as canonical JSON; a rebase replaces it. */
    spec: ArtifactRef,
    settings: SessionSettings,
    /** The actor and role of its agent runs. */
    agent: Type.Object(
      { ...namedActorProperties, role_id: Identifier, lane_id: Identifier, exposure: OneOf(EXPOSURES) },
      closed,
    ),
    by: RecordedCaller,
    /** The file that the spec was read from, which is read again at every step; null if it came as a document. */
    spec_file: Nullable(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** A second request with the same key and spec returns this session. */
    idempotency_key: Nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' })),
  },
  closed,
);
export type OpenSessionInput = Static<typeof OpenSessionInput>;

/** A command to a session, with the hashes from the shell. */
export const SessionInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('session'),
    feature,
    run_id: RunId,
    by: RecordedCaller,
    command: SessionCommand,
    vouch: SessionVouch,
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type SessionInput = Static<typeof SessionInput>;

declare module '../../../core/contract/run/input.js' {
  interface FeatureInputs {
    readonly open_session: OpenSessionInput;
    readonly session: SessionInput;
  }
}
