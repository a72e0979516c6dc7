// The part of AUTHORIZE that checks path arguments: canonical paths, extensions, existing files, quota. It relies on no
// check of an earlier phase, so that a defect in an earlier phase allows nothing (C21).

import type { ActionDefinition } from '../contract/policy/catalogue.js';
import { REFUSED_KINDS, type GatherRequest, type PathFact, type SandboxFacts } from '../contract/run/effect.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Json, JsonObject } from '../contract/json.js';
import { findFirstDenial, type OrderedCheck } from '../policy/verdict.js';
import type { Policy } from '../policy/policy.js';
import {
  canonicalizePath,
  isExtensionAllowed,
  pathOptionsOf,
  segmentCount,
  type SandboxPath,
} from '../policy/sandbox-path.js';

/**
 * The facts that `authorizePaths` needs in order to allow.
 * @returns null if the action has no path, or one that its text alone denies (not canonical, or with an extension that
 *   the policy does not allow): the sandbox never sees such a path
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
  /** Its `paths` are in the order of the definition; null if no facts were gathered. */
  readonly facts: SandboxFacts | null;
  readonly policy: Policy;
}

/**
 * Decides whether an action may use the paths in its arguments, by `PATH_CHECKS`. A path at which nothing exists, or a
 * directory, is not denied: EXECUTE reports it (S0-76).
 *
 * @returns the arguments with canonical paths, with which the effect runs, or POLICY_VIOLATION with cause SANDBOX,
 *   EXTENSION or QUOTA (LANE for an action that is not in the allowlist)
 */
export function authorizePaths(input: PathCheckInput): CheckedValue<JsonObject> {
  const { definition, args, policy } = input;
  if (!policy.actions.has(definition.name)) return rejectWith('POLICY_VIOLATION', 'action.not_in_allowlist', 'LANE');
  if (definition.paths.length === 0) return passWith(args);
  const denial = findFirstDenial(PATH_CHECKS, input);
  if (denial !== null) return denial;
  const named = canonicalPaths(definition, args, policy);
  return named.ok ? passWith(withPaths(definition, args, named.value)) : named;
}

/** The checks of path arguments in order, each with its own rule ids. */
export const PATH_CHECKS: readonly OrderedCheck<PathCheckInput, CheckedValue<never>>[] = [
  {
    claim: 'the paths lead into the sandbox',
    rules: ['sandbox.*'],
    findDenial: ({ definition, args, policy }) => {
      const named = canonicalPaths(definition, args, policy);
      return named.ok ? null : named;
    },
  },
  {
    claim: 'the extensions of the paths are allowed',
    rules: ['extension.not_allowed'],
    findDenial: (input) => checkExtension(input.definition, namedPaths(input), input.policy),
  },
  {
    claim: 'nothing at the paths is of a refused kind',
    rules: ['sandbox.no_facts', ...REFUSED_KINDS.map((kind) => `sandbox.${kind}`)],
    findDenial: ({ definition, facts }) => checkFacts(definition, facts),
  },
  {
    claim: 'the sandbox has room for it',
    rules: ['sandbox.depth', 'quota.*'],
    findDenial: (input) => checkQuota(input, namedPaths(input)),
  },
];

/** The name of a path argument and its canonical path. */
type NamedPath = readonly [name: string, path: SandboxPath];
type PathDenial = CheckedValue<never> | null;

type NamedPaths = CheckedValue<readonly NamedPath[]>;
const canonical = new WeakMap<
  JsonObject,
  { readonly definition: ActionDefinition; readonly policy: Policy; readonly paths: NamedPaths }
>();

/** Computed once for the same arguments: the checks before and after the facts need it. */
function canonicalPaths(definition: ActionDefinition, args: JsonObject, policy: Policy): NamedPaths {
  const known = canonical.get(args);
  if (known?.definition === definition && known.policy === policy) return known.paths;
  const paths = findCanonicalPaths(definition, args, policy);
  canonical.set(args, { definition, policy, paths });
  return paths;
}

/** The canonical paths; none if the first check denies them. */
function namedPaths({ definition, args, policy }: PathCheckInput): readonly NamedPath[] {
  const named = canonicalPaths(definition, args, policy);
  return named.ok ? named.value : [];
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

/** The arguments that the action defines, with canonical paths. */
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

/** Whether the sandbox can be larger afterwards: a deletion frees space, and a rename moves a file. */
const canGrow = ({ risk, write }: ActionDefinition): boolean => write !== null && risk === 'write';

/** The paths that can be created: all paths of a write, all but the removed one of a destructive action. */
const createdPaths = (definition: ActionDefinition, named: readonly NamedPath[]): readonly NamedPath[] =>
  definition.write === null ? [] : canGrow(definition) ? named : named.slice(1);

const bytesAt = (fact: PathFact): number => (fact.status === 'file' ? fact.bytes : 0);

const isThere = ({ status }: PathFact): boolean => status === 'file' || status === 'directory';
