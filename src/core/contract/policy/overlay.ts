// The emergency overlay (D1): signed rules that can only deny and take effect at once, in running trees too.

import Type, { type Static } from 'typebox';
import { PolicyName } from './policy-header.js';
import { Person } from '../person.js';
import { CaseId, closed, Identifier, OneOf, RunId, Timestamp } from '../shapes.js';

export const OVERLAY_RULES_MAX = 64;

/** A request as the overlay sees it. A field is null if the request has none; no matcher matches null. */
export interface OverlaySubject {
  readonly role_id: string | null;
  readonly lane_id: string | null;
  readonly action: string | null;
  readonly tool: string | null;
  readonly table: string | null;
  readonly case_id: string | null;
  readonly run_id: string | null;
  readonly actor_id: string | null;
  /** The person that the actor is compared as. Without it, only the name counts. */
  readonly person?: Person | null | undefined;
}
export type OverlayMatcher = Exclude<keyof OverlaySubject, 'person'>;

const MATCHERS = {
  role_id: Type.Optional(Identifier),
  lane_id: Type.Optional(Identifier),
  action: Type.Optional(Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' })),
  tool: Type.Optional(PolicyName),
  table: Type.Optional(PolicyName),
  case_id: Type.Optional(CaseId),
  /** A run and its descendants. */
  run_id: Type.Optional(RunId),
  actor_id: Type.Optional(Type.String({ pattern: '^.{3,120}$' })),
} as const satisfies Record<OverlayMatcher, unknown>;
export const OVERLAY_MATCHERS = Object.keys(MATCHERS) as readonly OverlayMatcher[];

const Epoch = Type.Integer({ minimum: 1, maximum: 999_999_999 });

/** Denies requests that match all of its matchers. A rule needs at least one: without any it would deny everything. */
export const OverlayRule = Type.Object(
  {
    /** Contains the epoch that introduced the rule, so an id is never used again. */
    rule_id: Type.String({ pattern: '^deny-[1-9][0-9]{0,8}$' }),
    // A pattern, because `maxLength` counts grapheme clusters, which can be of any length.
    reason: Type.String({ pattern: '^.{1,200}$' }),
    ...MATCHERS,
  },
  { ...closed, minProperties: 3 },
);
export type OverlayRule = Static<typeof OverlayRule>;

export const Overlay = Type.Object(
  { epoch: Epoch, issued_at_utc: Timestamp, rules: Type.Array(OverlayRule, { maxItems: OVERLAY_RULES_MAX }) },
  closed,
);
export type Overlay = Static<typeof Overlay>;

/** The file: an Ed25519 signature in base64 over `turnpike overlay v1 ` and the overlay's canonical JSON. */
export const SignedOverlay = Type.Object(
  {
    overlay: Overlay,
    /** The first 16 hex digits of the SHA-256 of the public key's SPKI DER. */
    key_id: Type.String({ pattern: '^[0-9a-f]{16}$' }),
    signature: Type.String({ pattern: '^[A-Za-z0-9+/]{86}==$' }),
  },
  closed,
);
export type SignedOverlay = Static<typeof SignedOverlay>;

/** Why an existing overlay cannot be trusted. Everything is denied then. */
export const OVERLAY_PROBLEMS = ['invalid', 'missing', 'rolled_back'] as const;
export type OverlayProblem = (typeof OVERLAY_PROBLEMS)[number];

/** A rule as inputs record it, with the person that its actor is compared as. */
export const ComparedRule = Type.Object(
  { ...OverlayRule.properties, person: Type.Optional(Person) },
  { ...closed, minProperties: 3 },
);
export type ComparedRule = Static<typeof ComparedRule>;

/** The overlay as an input records it. Null: there is no overlay and never was one. */
export const OverlayFact = Type.Union([
  Type.Object({ epoch: Epoch, rules: Type.Array(ComparedRule, { maxItems: OVERLAY_RULES_MAX }) }, closed),
  Type.Object({ epoch: Type.Null(), problem: OneOf(OVERLAY_PROBLEMS) }, closed),
]);
export type OverlayFact = Static<typeof OverlayFact>;
