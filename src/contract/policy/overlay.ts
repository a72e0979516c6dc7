// The emergency overlay (D1): rules that deny and nothing else, signed, in force at once in trees that run.

import Type, { type Static } from 'typebox';
import { PolicyName } from './policy-header.js';
import { Person } from '../person.js';
import { CaseId, closed, Identifier, OneOf, RunId, Timestamp } from '../shapes.js';

export const OVERLAY_RULES_MAX = 64;

/** A request as the overlay sees it. Null where the request has none; null is matched by nothing. */
export interface OverlaySubject {
  readonly role_id: string | null;
  readonly lane_id: string | null;
  readonly action: string | null;
  readonly tool: string | null;
  readonly table: string | null;
  readonly case_id: string | null;
  readonly run_id: string | null;
  readonly actor_id: string | null;
  /** Whom the actor is compared as. Without looks, as in trees without behaviour flag 13, the name alone is. */
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
  /** A run, and everything below it. */
  run_id: Type.Optional(RunId),
  actor_id: Type.Optional(Type.String({ pattern: '^.{3,120}$' })),
} as const satisfies Record<OverlayMatcher, unknown>;
export const OVERLAY_MATCHERS = Object.keys(MATCHERS) as readonly OverlayMatcher[];

const Epoch = Type.Integer({ minimum: 1, maximum: 999_999_999 });

/** Denies what matches all of its matchers. It has one or more: a rule without any would deny everything. */
export const OverlayRule = Type.Object(
  {
    /** Named by the epoch that brought it, so that no other rule ever has this id. */
    rule_id: Type.String({ pattern: '^deny-[1-9][0-9]{0,8}$' }),
    // By a pattern, since `maxLength` counts what a reader sees as one character, however long that is.
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

/** The file: Ed25519, in base64, over `turnpike overlay v1\n` and the overlay's canonical JSON. */
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

/** Why there is an overlay and none of its rules can be trusted. Then everything is denied. */
export const OVERLAY_PROBLEMS = ['invalid', 'missing', 'rolled_back'] as const;
export type OverlayProblem = (typeof OVERLAY_PROBLEMS)[number];

/** A rule as inputs record it: with the person whom its actor is compared as. */
export const ComparedRule = Type.Object(
  { ...OverlayRule.properties, person: Type.Optional(Person) },
  { ...closed, minProperties: 3 },
);
export type ComparedRule = Static<typeof ComparedRule>;

/** What a tree is told of the overlay, as a fact of an input. Null stands for: there is none, and never was. */
export const OverlayFact = Type.Union([
  Type.Object({ epoch: Epoch, rules: Type.Array(ComparedRule, { maxItems: OVERLAY_RULES_MAX }) }, closed),
  Type.Object({ epoch: Type.Null(), problem: OneOf(OVERLAY_PROBLEMS) }, closed),
]);
export type OverlayFact = Static<typeof OverlayFact>;
