// Parses the bytes of the policy files into an indexed policy, or reports everything that is wrong with them.
// `turnpike policy check`, the opening of a tree and a replay all call this function.

import { omitUndefined } from '../../omit-undefined.js';
import { ActionsPolicy } from '../../contract/policy/actions-policy.js';
import { createCatalogue, NO_REGISTRATIONS, type Catalogue } from '../../contract/policy/catalogue.js';
import { LanesPolicy } from '../../contract/policy/lanes.js';
import {
  OPTIONAL_FILE_KEYS,
  OPTIONAL_FILES,
  optionalValues,
  type ForPolicyFiles,
  type OptionalFiles,
  type PolicyFile,
} from '../../contract/policy/pins.js';
import { RolesPolicy } from '../../contract/policy/roles.js';
import { PolicyError } from '../../errors.js';
import { conditionLanguage, callDecider, approvalDecider } from '../policy-features.js';
import type { PolicyFinding } from './policy-finding.js';
import { findInconsistencies, type PolicyParts } from './policy-consistency.js';
import { readPolicyFile, type NamedPolicyFile } from './read-policy-file.js';
import type { Policy } from '../policy.js';

/** Maximum number of reported findings. */
const FINDINGS_MAX = 200;
const FINDINGS_IN_MESSAGE_MAX = 5;

/** `policy` is not null exactly if there is no finding. */
export interface PolicyCheck {
  readonly findings: readonly PolicyFinding[];
  readonly policy: Policy | null;
}

/**
 * Reads, checks and indexes a policy. Takes any bytes: every mistake is a finding. References between the files are
 * checked once each file is valid by itself. `catalogue` has the registrations of the embedding service; without one,
 * only the built-in actions exist.
 * @throws PolicyError POLICY_UNSUPPORTED if the policy needs a feature that is not installed
 */
export function checkPolicy(files: ForPolicyFiles<NamedPolicyFile>, catalogue: Catalogue = BUILT_IN): PolicyCheck {
  const lanes = readPolicyFile(files.lanes, LanesPolicy);
  const roles = readPolicyFile(files.roles, RolesPolicy);
  const actions = readPolicyFile(files.actions, ActionsPolicy);
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
  const bytes = { lanes: files.lanes.bytes, roles: files.roles.bytes, actions: files.actions.bytes };
  requireFeatures(parts);
  return checkOptional(files, indexPolicy(parts, catalogue, bytes));
}

/** @throws PolicyError POLICY_UNSUPPORTED without the feature that decides by these parts */
function requireFeatures({ lanes: { lanes }, actions: { approvals = [] } }: PolicyParts): void {
  if (lanes.some(({ calls }) => calls !== undefined)) callDecider();
  if (approvals.length > 0) approvalDecider();
}

/** Adds what the optional files say. @throws PolicyError POLICY_UNSUPPORTED without the feature that reads them */
function checkOptional(files: OptionalFiles<NamedPolicyFile>, policy: Policy): PolicyCheck {
  if (optionalValues(files).length === 0) return { findings: [], policy };
  const { findings, ...loaded } = conditionLanguage().load(files, policy);
  if (findings.length > 0) return { findings: findings.slice(0, FINDINGS_MAX), policy: null };
  if (loaded.conditions?.all.some(({ obligation }) => obligation !== null) === true) approvalDecider();
  return { findings: [], policy: { ...policy, ...loaded } };
}

/**
 * Loads a policy for callers that cannot show findings: the kernel and the replay.
 * @throws PolicyError POLICY_INVALID with the first findings in its message
 */
export function loadPolicy(bytes: ForPolicyFiles<Uint8Array>, catalogue: Catalogue = BUILT_IN): Policy {
  const named = (name: PolicyFile): NamedPolicyFile => ({ path: `${name}.yaml`, bytes: bytes[name] });
  const optional = OPTIONAL_FILE_KEYS.flatMap((name) => {
    const found = bytes[name];
    return found === undefined ? [] : [[name, { path: OPTIONAL_FILES[name], bytes: found }] as const];
  });
  const files = {
    lanes: named('lanes'),
    roles: named('roles'),
    actions: named('actions'),
    ...Object.fromEntries(optional),
  };
  const { findings, policy } = checkPolicy(files, catalogue);
  if (policy !== null) return policy;
  const shown = findings.slice(0, FINDINGS_IN_MESSAGE_MAX).map(formatFinding);
  const more = findings.length - shown.length;
  const message = `the policy is invalid: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

/** A finding as one line for people, in the form that editors and CI systems turn into links. */
export const formatFinding = ({ file, line, column, rule, message }: PolicyFinding): string =>
  `${file}:${line}${column === undefined ? '' : `:${column}`} ${rule}: ${message}`;

const BUILT_IN = createCatalogue(NO_REGISTRATIONS);

/** Policy files contain no flags: the code that opens or folds a tree adds them. */
const NO_BEHAVIOR_FLAGS: Policy['flags'] = new Set();

const indexPolicy = ({ lanes, roles, actions }: PolicyParts, catalogue: Catalogue, files: Policy['files']): Policy => ({
  files,
  lanes: new Map(lanes.lanes.map((lane) => [lane.lane_id, lane])),
  roles: new Map(roles.roles.map((role) => [role.role_id, role])),
  ...omitUndefined({ groups: roles.groups }),
  actions: new Map(actions.actions.map((action) => [action.action, action])),
  limits: actions.limits,
  sandbox: actions.sandbox,
  exposure: actions.response.exposure,
  budgets: actions.budgets ?? {},
  approvals: actions.approvals ?? [],
  ...omitUndefined({ secrets: actions.secrets, decision_points: actions.decision_points }),
  retries: actions.retries ?? { max: 0, backoff_ms: 0 },
  knobs: actions.knobs,
  catalogue,
  flags: NO_BEHAVIOR_FLAGS,
});
