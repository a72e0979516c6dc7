import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { FAULT_CODES } from '../fault.js';
import { OUTCOMES } from './phase.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../shapes.js';

/** What the store remembers of a proposal id inside one root run (C19). */
export const SeenProposal = Type.Object(
  {
    step_index: Type.Integer({ minimum: 1 }),
    run_id: RunId,
    payload_sha256: Sha256,
    /** How that step ended; null while it is still under way. */
    outcome: Nullable(OneOf(OUTCOMES)),
    error_code: Nullable(OneOf(FAULT_CODES)),
    /** Its response, as an artifact that this input brings; null where it is not to be given again. */
    response: Nullable(ArtifactRef),
  },
  closed,
);
export type SeenProposal = Static<typeof SeenProposal>;
