// What a tree is judged by, made from the bytes that it pinned. Parsing a policy and building the machines over it
// costs more than a step, so both are remembered by content: the same bytes give the same policy, always.

import { createMachines, type Machines } from '../../machines/index.js';
import type { Artifact } from '../contract/artifact-ref.js';
import { catalogueOf, NOTHING_REGISTERED, registrationsIn, type Catalogue } from '../contract/catalogue.js';
import { sha256 } from '../contract/hash.js';
import { InvariantError, PolicyError } from '../errors.js';
import { loadPolicy } from '../policy/check-policy.js';
import type { Policy } from '../policy/policy.js';
import { scanJson } from '../step/json-scanner.js';

/** Policies in use at the same time are few: the current one, and those of older trees. */
const POLICIES_MAX = 64;
const DEFINITIONS_DEPTH_MAX = 64;

const policies = new Map<string, Policy>();
const machines = new WeakMap<Policy, Machines>();

/**
 * The policy in the artifacts of an `open`, over the actions that the fourth of them registers.
 * @throws PolicyError POLICY_INVALID
 */
export function policyOf([lanes, roles, actions, definitions]: readonly Artifact[]): Policy {
  if (lanes === undefined || roles === undefined || actions === undefined) {
    throw new InvariantError('`open` must bring the lanes, roles and actions policies');
  }
  const key = `${hashOf(lanes)} ${hashOf(roles)} ${hashOf(actions)} ${definitions ? hashOf(definitions) : ''}`;
  const known = policies.get(key);
  if (known !== undefined) return known;
  const files = { lanes: lanes.bytes, roles: roles.bytes, actions: actions.bytes };
  const policy = loadPolicy(files, catalogueIn(definitions));
  if (policies.size >= POLICIES_MAX) policies.clear();
  policies.set(key, policy);
  return policy;
}

/** New trees share the artifacts of one loaded policy, and hashing the definitions costs more than opening a tree. */
const hashes = new WeakMap<Artifact, string>();

function hashOf(artifact: Artifact): string {
  const known = hashes.get(artifact) ?? sha256(artifact.bytes);
  hashes.set(artifact, known);
  return known;
}

/** @throws PolicyError POLICY_INVALID for a text that registers what cannot be registered */
function catalogueIn(definitions: Artifact | undefined): Catalogue {
  if (definitions === undefined) return catalogueOf(NOTHING_REGISTERED);
  const scanned = scanJson(Buffer.from(definitions.bytes).toString('utf8'), DEFINITIONS_DEPTH_MAX);
  const registrations = scanned.ok ? registrationsIn(scanned.value) : null;
  if (registrations !== null) return catalogueOf(registrations);
  throw new PolicyError({
    code: 'POLICY_INVALID',
    message: 'the definitions that the tree pinned register no actions',
  });
}

export function machinesFor(policy: Policy): Machines {
  const known = machines.get(policy) ?? createMachines(policy);
  machines.set(policy, known);
  return known;
}
