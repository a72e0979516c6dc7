// The policy of a tree, built from the bytes that the tree has pinned. Parsing a policy and building its machines costs
// more than a step, so both are cached by content hash.

import type { AnyStateMachine } from 'xstate';
import { FLAGS, flagsOf, NO_FLAGS, type Flags } from '../../machines/flags.js';
import { createMachines, machineDefinitions, type Machines } from '../../machines/index.js';
import { isWithheld, type Artifact, type StoredArtifact } from '../core/contract/artifact-ref.js';
import { sha256 } from '../core/contract/hash.js';
import {
  createCatalogue,
  NO_REGISTRATIONS,
  parseRegistrations,
  type Catalogue,
} from '../core/contract/policy/catalogue.js';
import { optionalValues, toOptionalFiles } from '../core/contract/policy/pins.js';
import type { OpenInput } from '../core/contract/run/entry.js';
import { loadFeaturesOfPolicy } from '../core/contract/run/feature-vocabulary.js';
import { isJsonObject, scanJson } from '../core/contract/json.js';
import { InvariantError, LedgerError, PolicyError } from '../core/errors.js';
import { conditionLanguage, approvalDecider } from '../core/policy/policy-features.js';
import { loadPolicy } from '../core/policy/files/check-policy.js';
import type { Policy } from '../core/policy/policy.js';
import type { RootMachine, TreeFeature } from './tree-feature.js';

/** Few policies are in use at the same time: the current one, and those of older trees. */
const POLICIES_MAX = 64;
const DEFINITIONS_DEPTH_MAX = 64;

const policies = new Map<string, Policy>();
const machines = new WeakMap<Policy, Machines>();
const rootMachines = new WeakMap<Policy, Map<RootMachine, AnyStateMachine>>();

/**
 * Builds the policy from the artifacts of an `open`; the fourth registers additional actions, and
 * the optional files follow in their order.
 * @throws PolicyError POLICY_INVALID; LedgerError LEDGER_OF_LATER_VERSION or LEDGER_UNSUPPORTED if this installation
 * cannot evaluate it, which says nothing about the tree
 */
export function policyOf([lanes, roles, actions, definitions, ...others]: readonly Artifact[]): Policy {
  if (lanes === undefined || roles === undefined || actions === undefined) {
    throw new InvariantError('`open` must bring the lanes, roles and actions policies');
  }
  const key = [lanes, roles, actions, definitions, ...others]
    .map((artifact) => (artifact === undefined ? '' : hashOf(artifact)))
    .join(' ');
  const known = policies.get(key);
  if (known !== undefined) return known;
  const files = {
    lanes: lanes.bytes,
    roles: roles.bytes,
    actions: actions.bytes,
    ...toOptionalFiles(others.map(({ bytes }) => bytes)),
  };
  const pinned = definitions === undefined ? null : parseDefinitions(definitions);
  const catalogue = readCatalogue(pinned);
  const flags = readFlags(pinned);
  if (files.conditions !== undefined) checkEngine(pinned);
  const policy = { ...requireSupport(() => loadPolicy(files, catalogue)), flags };
  if (policies.size >= POLICIES_MAX) policies.clear();
  policies.set(key, policy);
  return policy;
}

/**
 * Loads the features that the pinned policies of a tree need, before they are parsed.
 * @param contents the content of the opening input @returns null if there is nothing to load
 */
export function loadPinnedFeatures(contents: readonly StoredArtifact[]): Promise<void> | null {
  const [lanes, roles, actions, , ...others] = contents.map((artifact) =>
    isWithheld(artifact) ? undefined : artifact,
  );
  // Other content of an opening follows the policies.
  const optional = toOptionalFiles(others.filter((artifact) => artifact?.kind === 'policy'));
  return loadFeaturesOfPolicy({ lanes, roles, actions, ...optional });
}

/** The policy of an `open` without its optional files, which need a feature. */
export const requiredPolicyOf = (pinned: readonly Artifact[]): Policy => policyOf(pinned.slice(0, PINS));

/**
 * The text of the machine definitions that a tree under this policy pins.
 * @param roots the root machines of features: for a tree, that of the feature that opens it
 */
export const definitionsOf = (policy: Policy, ...roots: readonly (RootMachine | undefined)[]): string =>
  machineDefinitions(
    machinesFor(policy),
    policy.catalogue,
    policy.flags,
    policy.conditions === undefined ? null : conditionLanguage().engineVersion(),
    Object.fromEntries(roots.flatMap((root) => (root === undefined ? [] : [[root.name, rootMachine(policy, root)]]))),
  );

/**
 * The behaviour flags of a new tree. A tree does not have a flag that is not about its policy, so that a version
 * without the flag can read it.
 */
export const newTreeFlags = (policy: Policy): Flags => flagsOf(FLAGS.filter(({ isFor }) => isFor?.(policy) ?? true));

/** The policies and machine definitions of an opening input, which are the first of its materials. */
export const pinnedArtifacts = <T>({ policies }: Pick<OpenInput, 'policies'>, materials: readonly T[]): readonly T[] =>
  materials.slice(0, PINS + optionalValues(policies).length);
const PINS = 4;

/** New trees share the artifacts of one loaded policy, and hashing the definitions costs more than opening a tree. */
const hashes = new WeakMap<Artifact, string>();

function hashOf(artifact: Artifact): string {
  const known = hashes.get(artifact) ?? sha256(artifact.bytes);
  hashes.set(artifact, known);
  return known;
}

/** @returns undefined if the text is not JSON */
function parseDefinitions({ bytes }: Artifact): unknown {
  const scanned = scanJson(Buffer.from(bytes).toString('utf8'), DEFINITIONS_DEPTH_MAX);
  return scanned.ok ? scanned.value : undefined;
}

/** @throws PolicyError POLICY_INVALID for an invalid registration */
function readCatalogue(definitions: unknown): Catalogue {
  if (definitions === null) return createCatalogue(NO_REGISTRATIONS);
  const registrations = definitions === undefined ? null : parseRegistrations(definitions);
  if (registrations !== null) return createCatalogue(registrations);
  throw invalidPolicy('the definitions that the tree pinned register no actions');
}

/**
 * The behaviour flags of a tree. The definitions of a tree without flags do not have the member.
 * @throws LedgerError LEDGER_OF_LATER_VERSION for an unknown flag; PolicyError POLICY_INVALID for what is no flag
 */
function readFlags(definitions: unknown): Flags {
  const found: unknown = isJsonObject(definitions) ? definitions['flags'] : undefined;
  if (found === undefined) return NO_FLAGS;
  const unknown = unknownFlagsIn(found);
  if (unknown.length === 0) return new Set(found as number[]);
  const shown = JSON.stringify(unknown).slice(0, SHOWN_CHARS);
  const message = `the tree was opened with behaviour flags that this version does not know: ${shown}`;
  if (!Array.isArray(found) || !found.every(Number.isSafeInteger)) throw invalidPolicy(message);
  throw new LedgerError({ code: 'LEDGER_OF_LATER_VERSION', message: `${message}: install the version that opened it` });
}
const SHOWN_CHARS = 80;

/** @throws LedgerError LEDGER_UNSUPPORTED if the engine is missing, or is of another version of Cedar's language */
function checkEngine(definitions: unknown): void {
  const pinned: unknown = isJsonObject(definitions) ? definitions['cedar'] : undefined;
  const language: unknown = isJsonObject(pinned) ? pinned['language'] : undefined;
  const { language: ours } = requireSupport(() => conditionLanguage().engineVersion());
  if (language === ours) return;
  const shown = JSON.stringify(language ?? null).slice(0, SHOWN_CHARS);
  throw unsupported(
    `the conditions of the tree are of version ${shown} of Cedar's language, and this one is ${ours}: ` +
      'install the version of Turnpike that recorded it',
  );
}

/** @throws LedgerError LEDGER_UNSUPPORTED if this installation cannot count votes */
export function requireApprovals(): void {
  requireSupport(approvalDecider);
}

/** @throws LedgerError LEDGER_UNSUPPORTED in the place of PolicyError POLICY_UNSUPPORTED */
function requireSupport<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    const isUnsupportedPolicy = error instanceof PolicyError && error.code === 'POLICY_UNSUPPORTED';
    throw isUnsupportedPolicy ? unsupported(error.message, error) : error;
  }
}

const unsupported = (message: string, cause?: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNSUPPORTED', message, cause });

/** Whether the error says that this installation cannot evaluate a policy. Then nothing is known of the decisions. */
export const isUnsupported = (error: unknown): error is LedgerError =>
  error instanceof LedgerError && UNSUPPORTED_CODES.has(error.code);
const UNSUPPORTED_CODES: ReadonlySet<string> = new Set(['LEDGER_OF_LATER_VERSION', 'LEDGER_UNSUPPORTED']);

function unknownFlagsIn(found: unknown): readonly unknown[] {
  const known = flagsOf(FLAGS);
  return Array.isArray(found) ? found.filter((flag) => !known.has(flag as number)) : [found];
}

const invalidPolicy = (message: string): PolicyError => new PolicyError({ code: 'POLICY_INVALID', message });

/** The root machine of the trees that a feature opens, under this policy. @throws InvariantError if it opens none */
export function rootMachineFor(policy: Policy, { feature, root }: TreeFeature): AnyStateMachine {
  if (root === undefined) throw new InvariantError(`the feature ${feature} opens no trees`);
  return rootMachine(policy, root);
}

function rootMachine(policy: Policy, root: RootMachine): AnyStateMachine {
  const known = rootMachines.get(policy) ?? new Map<RootMachine, AnyStateMachine>();
  const machine = known.get(root) ?? root.create(machinesFor(policy));
  rootMachines.set(policy, known.set(root, machine));
  return machine;
}

export function machinesFor(policy: Policy): Machines {
  const known = machines.get(policy) ?? createMachines(policy);
  machines.set(policy, known);
  return known;
}
