import Type, { type Static } from 'typebox';
import { policyHeader } from './policy-header.js';
import { Actor, closed, Identifier, OneOf } from '../shapes.js';

/** The actors that have a role and the lanes they may use. The lane must list the role as well (C55). */
export const Role = Type.Object(
  {
    role_id: Identifier,
    description: Type.String({ minLength: 1, maxLength: 400 }),
    class: OneOf(['system', 'agent', 'human']),
    privileges: Type.Object({ lanes: Type.Array(Identifier, { maxItems: 256 }) }, closed),
  },
  closed,
);
export type Role = Static<typeof Role>;

/** Persons that conditions name together: `principal in Group::"finance"`. Also the actors that they are known as. */
export const Group = Type.Object(
  { group: Identifier, persons: Type.Array(Actor.properties.actor_id, { minItems: 1, maxItems: 256 }) },
  closed,
);
export type Group = Static<typeof Group>;

/** The schema of `roles.yaml`: 1 to 256 roles. */
export const RolesPolicy = Type.Object(
  {
    ...policyHeader,
    roles: Type.Array(Role, { minItems: 1, maxItems: 256 }),
    groups: Type.Optional(Type.Array(Group, { maxItems: 64 })),
  },
  closed,
);
/** A roles policy that conforms to the schema `RolesPolicy`. */
export type RolesPolicy = Static<typeof RolesPolicy>;
