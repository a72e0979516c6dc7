import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { FAULT_CODES } from '../fault.js';
import { OUTCOMES } from './phase.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../shapes.js';

/** What the store knows of a proposal id within one root run (C19). */
export const SeenProposal = Type.Object(
  {
    step_index: Type.Integer({ minimum: 1 }),
    run_id: RunId,
    payload_sha256: Sha256,
    /** The outcome of that step; null while it is in flight. */
    outcome: Nullable(OneOf(OUTCOMES)),
    error_code: Nullable(OneOf(FAULT_CODES)),
    /** Its response, as an artifact that comes with this input; null if it must not be returned again. */
    response: Nullable(ArtifactRef),
  },
  closed,
);
export type SeenProposal = Static<typeof SeenProposal>;
