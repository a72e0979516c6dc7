import Type, { type Static } from 'typebox';
import { CallRule } from './call-rules.js';
import { ContentChecks } from './content-checks.js';
import { LabelRefusals } from './labels.js';
import { policyHeader, PolicyName } from './policy-header.js';
import { closed, Identifier, OneOf } from '../shapes.js';

export const WRITE_MODES = ['append', 'upsert'] as const;
export type WriteMode = (typeof WRITE_MODES)[number];

/** A lane: which roles may use it, for which tools and write targets, under which conditions (S4 §5). */
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
        /** Tables whose records runs in this lane may read (S4-16). */
        reads: Type.Optional(Type.Array(PolicyName, { maxItems: 256 })),
      },
      closed,
    ),
    /**
     * What calls of its tools may contain: commands, paths, hosts, names. Absent: no rules. With it, a call of any tool
     * of CALL_TOOL needs a rule that allows it.
     */
    calls: Type.Optional(Type.Array(CallRule, { minItems: 1, maxItems: 256 })),
    scope: Type.Object(
      { requires: Type.Array(PolicyName, { maxItems: 64 }), prohibits: Type.Array(PolicyName, { maxItems: 64 }) },
      closed,
    ),
    audit: Type.Object({ required: Type.Boolean(), level: Type.Literal('full') }, closed),
    /** C36: whether manifests of this lane may embed text. Default: no (S4-62). */
    allow_embedded_text: Type.Optional(Type.Boolean()),
    /** S4-84: whether runs in this lane may read records of other cases. Default: no. */
    cross_case_reads: Type.Optional(Type.Boolean()),
    /**
     * Labels that stop a run in this lane from writing or exporting after it has read content with them. Default: none.
     */
    refuses_labels: Type.Optional(LabelRefusals),
    /** S4-65: whether a failed run may leave partial output behind. Default: no. */
    partial_outputs: Type.Optional(Type.Boolean()),
    /** Whether a session's report in this lane may name files that no run of the step has changed. Absent means yes. */
    refuses_unmediated: Type.Optional(Type.Boolean()),
    /**
     * Whether payloads and content of runs in this lane are shown as hashes to all but their agent and approvers (C83).
     */
    withholds_content: Type.Optional(Type.Boolean()),
    /** C84: whether an approved export may contain content that this lane withholds. Default: no. */
    exports_content: Type.Optional(Type.Boolean()),
    /** S4-73, C92: how the records of promotions in this lane are searched. Absent: with the default settings. */
    content_checks: Type.Optional(ContentChecks),
    /** C46: whether runs in this lane inherit the case. Default: yes. */
    inherits_case_id: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type Lane = Static<typeof Lane>;

/** The schema of `lanes.yaml`: 1 to 256 lanes. */
export const LanesPolicy = Type.Object(
  { ...policyHeader, lanes: Type.Array(Lane, { minItems: 1, maxItems: 256 }) },
  closed,
);
/** A lanes policy that conforms to the schema `LanesPolicy`. */
export type LanesPolicy = Static<typeof LanesPolicy>;
