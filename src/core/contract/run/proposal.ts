import Type, { type Static } from 'typebox';
import type { JsonObject } from '../json.js';
import { closed } from '../shapes.js';

export const REASONING_CHARS_MAX = 8_192;
export const SCHEMA_VERSION_CHARS_MAX = 32;

/** RFC 9562 text form, any version, either case, nil and max included, without surrounding characters (C17). */
export const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$';
/** S0-27. The step distinguishes well-formed versions of another major from malformed ones (C03). */
export const SCHEMA_VERSION_PATTERN = '^1\\.\\d+\\.\\d+$';

/** The only five keys of a proposal (S0-07 to S0-11, S0-32). `action` and `args` have phases of their own. */
export const Proposal = Type.Object(
  {
    schema_version: Type.String({ maxLength: SCHEMA_VERSION_CHARS_MAX, pattern: SCHEMA_VERSION_PATTERN }),
    id: Type.String({ pattern: UUID_PATTERN }),
    reasoning: Type.String({ minLength: 1, maxLength: REASONING_CHARS_MAX }),
    action: Type.String(),
    args: Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true })),
  },
  closed,
);
export type Proposal = Static<typeof Proposal>;
