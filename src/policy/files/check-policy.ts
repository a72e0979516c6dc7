// Parses the bytes of the policy files into an indexed policy, or reports everything that is wrong with them.
// `turnpike policy check`, the opening of a tree and a replay all call this function.

import type { Static, TSchema } from 'typebox';
import { ActionsPolicy } from '../../contract/policy/actions-policy.js';
import { createCatalogue, NO_REGISTRATIONS, type Catalogue } from '../../contract/policy/catalogue.js';
import { LanesPolicy } from '../../contract/policy/lanes.js';
import { CONDITIONS_FILE_NAME, type ForPolicyFiles, type PolicyFile } from '../../contract/policy/pins.js';
import { RolesPolicy } from '../../contract/policy/roles.js';
import { isInstance, findSchemaMistakes, type SchemaMistake } from '../../contract/validators.js';
import { PolicyError } from '../../errors.js';
import { loadConditions } from '../conditions/conditions.js';
import type { PolicyFinding, FindingRule } from './policy-finding.js';
import { findInconsistencies, type PolicyParts } from './policy-consistency.js';
import {
  readStrictYaml,
  type YamlDocument,
  type YamlLimits,
  type YamlNumbers,
  type YamlReadResult,
} from './strict-yaml.js';
import type { Policy } from '../policy.js';

/** Maximum number of reported findings. */
const FINDINGS_MAX = 200;
const FINDINGS_IN_MESSAGE_MAX = 5;
/** The shipped lanes have about 900 parts. */
const POLICY_LIMITS: YamlLimits = { bytes_max: 1_048_576, parts_max: 15_000 };

/** The bytes of a policy file, and the name that findings use for it. */
export interface NamedPolicyFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** `policy` is not null exactly if there is no finding. */
export interface PolicyCheck {
  readonly findings: readonly PolicyFinding[];
  readonly policy: Policy | null;
}

/**
 * Reads, checks and indexes a policy. Takes any bytes: every mistake is a finding. References between the files are
 * checked once each file is valid by itself. `catalogue` has the registrations of the embedding service; without one,
 * only the built-in actions exist.
 */
export function checkPolicy(
  files: ForPolicyFiles<NamedPolicyFile>,
  catalogue: Catalogue = BUILT_IN,
  numbers: YamlNumbers = 'plain',
): PolicyCheck {
  const lanes = readPolicyFile(files.lanes, LanesPolicy, numbers);
  const roles = readPolicyFile(files.roles, RolesPolicy, numbers);
  const actions = readPolicyFile(files.actions, ActionsPolicy, numbers);
  const ownFindings = [...lanes.findings, ...roles.findings, ...actions.findings];
  if (lanes.value === null || roles.value === null || actions.value === null) {
    return { findings: ownFindings.slice(0, FINDINGS_MAX), policy: null };
  }
  const parts = { lanes: lanes.value, roles: roles.value, actions: actions.value };
  const documents = { lanes: lanes.document, roles: roles.document, actions: actions.document };
  const findings = findInconsistencies(parts, catalogue).map(({ name, pointer, rule, message }) => ({
    file: files[name].path,
    line: documents[name].lineOf(pointer),
    rule,
    message,
  }));
  if (findings.length > 0) return { findings: findings.slice(0, FINDINGS_MAX), policy: null };
  const policy = indexPolicy(parts, catalogue);
  if (files.conditions === undefined) return { findings, policy };
  const { path, bytes } = files.conditions;
  const read = loadConditions(path, bytes, policy);
  const isValid = read.findings.length === 0;
  return {
    findings: read.findings.slice(0, FINDINGS_MAX),
    policy: isValid ? { ...policy, conditions: read.conditions } : null,
  };
}

/**
 * Loads a policy for callers that cannot show findings: the kernel and the replay.
 * @param numbers `any` for a tree without behaviour flag 8
 * @throws PolicyError POLICY_INVALID with the first findings in its message
 */
export function loadPolicy(
  bytes: ForPolicyFiles<Uint8Array>,
  catalogue: Catalogue = BUILT_IN,
  numbers: YamlNumbers = 'plain',
): Policy {
  const named = (name: PolicyFile): NamedPolicyFile => ({ path: `${name}.yaml`, bytes: bytes[name] });
  const conditions = bytes.conditions && { path: CONDITIONS_FILE_NAME, bytes: bytes.conditions };
  const files = { lanes: named('lanes'), roles: named('roles'), actions: named('actions'), conditions };
  const { findings, policy } = checkPolicy(files, catalogue, numbers);
  if (policy !== null) return policy;
  const shown = findings.slice(0, FINDINGS_IN_MESSAGE_MAX).map(formatFinding);
  const more = findings.length - shown.length;
  const message = `the policy is invalid: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

/** A finding as one line for people, in the form that editors and CI systems turn into links. */
export const formatFinding = ({ file, line, column, rule, message }: PolicyFinding): string =>
  `${file}:${line}${column === undefined ? '' : `:${column}`} ${rule}: ${message}`;

export type FileReadResult<T> =
  | { readonly value: T; readonly document: YamlDocument; readonly findings: readonly [] }
  | { readonly value: null; readonly findings: readonly PolicyFinding[] };

/** Reads one policy file, and checks it against its schema. */
export function readPolicyFile<const T extends TSchema>(
  { path, bytes }: NamedPolicyFile,
  schema: T,
  numbers: YamlNumbers,
): FileReadResult<Static<T>> {
  const { document, problems } = readPolicyYaml(bytes, numbers);
  if (document === null) return { value: null, findings: problems.map((problem) => ({ file: path, ...problem })) };
  const { data, lineOf } = document;
  if (isInstance(schema, data)) return { value: data, document, findings: [] };
  const mistakes = new Map(
    findSchemaMistakes(schema, data)
      .map(toVersionMistake)
      .map((mistake) => [mistake.message, mistake]),
  );
  const findings = [...mistakes.values()].map(({ pointer, ...mistake }) => ({
    file: path,
    line: lineOf(pointer),
    ...mistake,
  }));
  return { value: null, findings };
}

const VERSIONS: readonly string[] = ['/version', '/contract_version'];

type PolicyMistake = Omit<SchemaMistake, 'rule'> & { readonly rule: FindingRule };

const toVersionMistake = (mistake: SchemaMistake): PolicyMistake =>
  VERSIONS.includes(mistake.pointer)
    ? { pointer: mistake.pointer, rule: 'version.mismatch', message: `${mistake.pointer.slice(1)} must be v1` }
    : mistake;

const BUILT_IN = createCatalogue(NO_REGISTRATIONS);

/** Policy files contain no flags: the code that opens or folds a tree adds them. */
const NO_BEHAVIOR_FLAGS: Policy['flags'] = new Set();

const indexPolicy = ({ lanes, roles, actions }: PolicyParts, catalogue: Catalogue): Policy => ({
  lanes: new Map(lanes.lanes.map((lane) => [lane.lane_id, lane])),
  roles: new Map(roles.roles.map((role) => [role.role_id, role])),
  actions: new Map(actions.actions.map((action) => [action.action, action])),
  limits: actions.limits,
  sandbox: actions.sandbox,
  exposure: actions.response.exposure,
  budgets: actions.budgets ?? {},
  approvals: actions.approvals ?? [],
  ...(actions.secrets === undefined ? {} : { secrets: actions.secrets }),
  retries: actions.retries ?? { max: 0, backoff_ms: 0 },
  knobs: actions.knobs,
  catalogue,
  flags: NO_BEHAVIOR_FLAGS,
});

/** Reads one policy file: any bytes, without throwing, in time proportional to their number. */
export const readPolicyYaml = (bytes: Uint8Array, numbers: YamlNumbers = 'plain'): YamlReadResult =>
  readStrictYaml(bytes, POLICY_LIMITS, numbers);
