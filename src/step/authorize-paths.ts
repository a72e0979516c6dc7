// The part of AUTHORIZE that looks at the arguments: canonical paths, extensions, what stands there, quota. It relies
// on no check of an earlier phase, so that a mistake in one of them opens nothing (C21).

import type { ActionDefinition } from '../contract/policy/actions.js';
import type { GatherRequest, PathFact, SandboxFacts } from '../contract/run/effect.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Json, JsonObject } from '../contract/json.js';
import type { Policy } from '../policy/policy.js';
import {
  canonicalizePath,
  isExtensionAllowed,
  pathOptionsOf,
  segmentCount,
  type SandboxPath,
} from '../policy/sandbox-path.js';

/**
 * What has to be found out before `authorizePaths` can allow.
 * @returns null where the action has no path, or one that is denied as it is written (not canonical, or of an ending
 *   that the policy does not have): nobody is ever asked about such a path
 */
export function gatherRequestFor(
  definition: ActionDefinition,
  args: JsonObject,
  case_id: string,
  policy: Policy,
): GatherRequest | null {
  if (definition.paths.length === 0) return null;
  const named = canonicalPaths(definition, args, policy);
  if (!named.ok || checkExtension(definition, named.value, policy) !== null) return null;
  const { portable_names } = policy.sandbox;
  return { case_id, paths: named.value.map(([, path]) => path), usage: canGrow(definition), portable_names };
}

interface PathCheckInput {
  readonly definition: ActionDefinition;
  readonly args: JsonObject;
  /** `paths` in the order of the definition's; null when they could not be gathered. */
  readonly facts: SandboxFacts | null;
  readonly policy: Policy;
}

/**
 * Decides whether an action may be done to the paths it names. The checks stand in a fixed order, each with a rule_id
 * of its own. A path where nothing stands, or a directory, is no reason to deny: EXECUTE reports it (S0-76).
 *
 * @returns the arguments with canonical paths, with which the effect is performed, or POLICY_VIOLATION with cause
 *   SANDBOX, EXTENSION or QUOTA (LANE for an action that is not in the allowlist)
 */
export function authorizePaths({ definition, args, facts, policy }: PathCheckInput): CheckedValue<JsonObject> {
  if (!policy.actions.has(definition.name)) return rejectWith('POLICY_VIOLATION', 'action.not_in_allowlist', 'LANE');
  if (definition.paths.length === 0) return passWith(args);
  const named = canonicalPaths(definition, args, policy);
  if (!named.ok) return named;
  const denied =
    checkExtension(definition, named.value, policy) ??
    checkFacts(definition, facts) ??
    checkQuota({ definition, args, facts, policy }, named.value);
  return denied ?? passWith(withPaths(definition, args, named.value));
}

/** A path argument: its name, and what it canonically is. */
type NamedPath = readonly [name: string, path: SandboxPath];
type PathDenial = CheckedValue<never> | null;

type NamedPaths = CheckedValue<readonly NamedPath[]>;
const canonical = new WeakMap<
  JsonObject,
  { readonly definition: ActionDefinition; readonly policy: Policy; readonly paths: NamedPaths }
>();

/** Asked for before the facts, with them and after them: the same arguments give the same. */
function canonicalPaths(definition: ActionDefinition, args: JsonObject, policy: Policy): NamedPaths {
  const known = canonical.get(args);
  if (known?.definition === definition && known.policy === policy) return known.paths;
  const paths = findCanonicalPaths(definition, args, policy);
  canonical.set(args, { definition, policy, paths });
  return paths;
}

function findCanonicalPaths(definition: ActionDefinition, args: JsonObject, policy: Policy): NamedPaths {
  const options = pathOptionsOf(definition, policy);
  const named: NamedPath[] = [];
  for (const name of definition.paths) {
    const raw = args[name];
    if (typeof raw !== 'string') return rejectWith('POLICY_VIOLATION', 'sandbox.no_path', 'SANDBOX');
    const path = canonicalizePath(raw, options);
    if (!path.ok) return path;
    named.push([name, path.value]);
  }
  return passWith(named);
}

/** The arguments that the action has, with the paths as they canonically are. */
function withPaths(definition: ActionDefinition, args: JsonObject, named: readonly NamedPath[]): JsonObject {
  const canonical: Record<string, Json> = {};
  for (const name of Object.keys(definition.args.properties)) {
    const value = args[name];
    if (value !== undefined) canonical[name] = value;
  }
  for (const [name, path] of named) canonical[name] = path;
  return canonical;
}

function checkExtension(definition: ActionDefinition, named: readonly NamedPath[], policy: Policy): PathDenial {
  const rules = policy.actions.get(definition.name)?.extensions ?? {};
  const refused = named.some(([name, path]) => {
    const endings = rules[name];
    return endings !== undefined && !isExtensionAllowed(path, endings);
  });
  return refused ? rejectWith('POLICY_VIOLATION', 'extension.not_allowed', 'EXTENSION') : null;
}

function checkFacts(definition: ActionDefinition, facts: SandboxFacts | null): PathDenial {
  if (
    facts === null ||
    facts.paths.length !== definition.paths.length ||
    (canGrow(definition) && facts.usage === null)
  ) {
    return rejectWith('POLICY_VIOLATION', 'sandbox.no_facts', 'SANDBOX');
  }
  const fact = facts.paths.find(({ status }) => status === 'refused');
  return fact?.status === 'refused' ? rejectWith('POLICY_VIOLATION', `sandbox.${fact.kind}`, 'SANDBOX') : null;
}

function checkQuota({ definition, args, facts, policy }: PathCheckInput, named: readonly NamedPath[]): PathDenial {
  const { bytes_max, files_max, depth_max } = policy.sandbox;
  if (createdPaths(definition, named).some(([, path]) => segmentCount(path) > depth_max))
    return quotaFault('sandbox.depth');
  const fact = facts?.paths[0];
  const usage = facts?.usage ?? null;
  if (!canGrow(definition) || fact === undefined || usage === null) return null;
  const { content } = args;
  const bytes = typeof content === 'string' ? Buffer.byteLength(content) : 0;
  if (usage.bytes - bytesAt(fact) + bytes > bytes_max) return quotaFault('quota.bytes');
  return usage.files + (isThere(fact) ? 0 : 1) > files_max ? quotaFault('quota.files') : null;
}

const quotaFault = (rule_id: string): CheckedValue<never> => rejectWith('POLICY_VIOLATION', rule_id, 'QUOTA');

/** Can the sandbox be larger afterwards? Deleting makes room, and renaming moves what is there. */
const canGrow = ({ risk, write }: ActionDefinition): boolean => write !== null && risk === 'write';

/** Paths that may come into being: all those of a write; of a destructive action all but the one it takes away. */
const createdPaths = (definition: ActionDefinition, named: readonly NamedPath[]): readonly NamedPath[] =>
  definition.write === null ? [] : canGrow(definition) ? named : named.slice(1);

const bytesAt = (fact: PathFact): number => (fact.status === 'file' ? fact.bytes : 0);

const isThere = ({ status }: PathFact): boolean => status === 'file' || status === 'directory';
