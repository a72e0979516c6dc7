import Type, { type Static } from 'typebox';
import { ContentChecks } from './content-checks.js';
import { LabelRefusals } from './labels.js';
import { policyHeader, PolicyName } from './policy-header.js';
import { closed, Identifier, OneOf } from '../shapes.js';

export const WRITE_MODES = ['append', 'upsert'] as const;
export type WriteMode = (typeof WRITE_MODES)[number];

/** A governed corridor: who may use it, for which tools and write targets, under which conditions (S4 §5). */
export const Lane = Type.Object(
  {
    lane_id: Identifier,
    purpose: Type.String({ minLength: 1, maxLength: 400 }),
    allowed_callers: Type.Object({ roles: Type.Array(Identifier, { maxItems: 64 }) }, closed),
    allowed_actions: Type.Object(
      {
        tools: Type.Optional(Type.Array(PolicyName, { maxItems: 256 })),
        writes: Type.Optional(
          Type.Array(Type.Object({ table: PolicyName, mode: OneOf(WRITE_MODES) }, closed), { maxItems: 256 }),
        ),
        /** Tables whose records may be read (S4-16). */
        reads: Type.Optional(Type.Array(PolicyName, { maxItems: 256 })),
      },
      closed,
    ),
    scope: Type.Object(
      { requires: Type.Array(PolicyName, { maxItems: 64 }), prohibits: Type.Array(PolicyName, { maxItems: 64 }) },
      closed,
    ),
    audit: Type.Object({ required: Type.Boolean(), level: Type.Literal('full') }, closed),
    /** C36: may manifests of this lane embed text? Absent means no (S4-62). */
    allow_embedded_text: Type.Optional(Type.Boolean()),
    /** S4-84: may runs in this lane read records of other cases? Absent means no. */
    cross_case_reads: Type.Optional(Type.Boolean()),
    /** What runs in this lane may not write or hand out, after what they have read. Absent means nothing of its own. */
    refuses_labels: Type.Optional(LabelRefusals),
    /** S4-65: may a failed run leave behind what it made? Absent means no. */
    partial_outputs: Type.Optional(Type.Boolean()),
    /** May a session's report in this lane name files that no run of the step has changed? Absent means yes. */
    refuses_unmediated: Type.Optional(Type.Boolean()),
    /** Is what runs in this lane said and brought shown as hashes, to all but its agent and its approvers (C83)? */
    withholds_content: Type.Optional(Type.Boolean()),
    /** C84: of content that this lane withholds, may an approved export hold it? Absent means no. */
    exports_content: Type.Optional(Type.Boolean()),
    /** S4-73, C92: how the records of promotions in this lane are searched. Absent means by the defaults. */
    content_checks: Type.Optional(ContentChecks),
    /** C46: a lane may refuse to hand the case on to runs in it. Absent means that it is inherited. */
    inherits_case_id: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type Lane = Static<typeof Lane>;

export const LanesPolicy = Type.Object(
  { ...policyHeader, lanes: Type.Array(Lane, { minItems: 1, maxItems: 256 }) },
  closed,
);
export type LanesPolicy = Static<typeof LanesPolicy>;
