// What a tree is judged by, made from the bytes that it pinned. Parsing a policy and building the machines over it
// costs more than a step, so both are remembered by content: the same bytes give the same policy, always.

import { createMachines, type Machines } from '../../machines/index.js';
import type { Artifact } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import { InvariantError } from '../errors.js';
import { loadPolicy } from '../policy/check-policy.js';
import type { Policy } from '../policy/policy.js';

/** Policies in use at the same time are few: the current one, and those of older trees. */
const POLICIES_MAX = 64;

const policies = new Map<string, Policy>();
const machines = new WeakMap<Policy, Machines>();

/** The policy in the first three artifacts of an `open`. @throws PolicyError POLICY_INVALID */
export function policyOf([lanes, roles, actions]: readonly Artifact[]): Policy {
  if (lanes === undefined || roles === undefined || actions === undefined) {
    throw new InvariantError('`open` must bring the lanes, roles and actions policies');
  }
  const key = [lanes, roles, actions].map(({ bytes }) => sha256(bytes)).join();
  const known = policies.get(key);
  if (known !== undefined) return known;
  const policy = loadPolicy({ lanes: lanes.bytes, roles: roles.bytes, actions: actions.bytes });
  if (policies.size >= POLICIES_MAX) policies.clear();
  policies.set(key, policy);
  return policy;
}

export function machinesFor(policy: Policy): Machines {
  const known = machines.get(policy) ?? createMachines(policy);
  machines.set(policy, known);
  return known;
}
