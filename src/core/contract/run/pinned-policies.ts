import Type from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { Pin, PIN_PROBLEMS } from '../policy/pins.js';
import { closed, OneOf } from '../shapes.js';

const PolicyPin = Type.Union([
  Type.Object({ ...Pin.properties, artifact: ArtifactRef }, closed),
  Type.Object({ problem: OneOf(PIN_PROBLEMS), artifact: ArtifactRef }, closed),
]);

/** The policy files by which the runs of a tree are judged (D1). */
export const PinnedPolicies = Type.Object(
  {
    lanes: PolicyPin,
    roles: PolicyPin,
    actions: PolicyPin,
    conditions: Type.Optional(PolicyPin),
    counters: Type.Optional(PolicyPin),
  },
  closed,
);
