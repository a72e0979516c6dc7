// Parses identities.yaml, or reports everything that is wrong with it.

import { IdentitiesPolicy, type IdentityMapping } from '../../core/contract/policy/identities.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { CROSS_CASE_RIGHTS } from '../../core/contract/token.js';
import { PolicyError } from '../../core/errors.js';
import { formatFinding } from '../../core/policy/files/check-policy.js';
import { readPolicyFile, type NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import type { IDENTITY_RULES, PolicyFinding } from '../../core/policy/files/policy-finding.js';

/** `identities` is not null exactly if there is no finding. */
export interface IdentitiesCheck {
  readonly findings: readonly PolicyFinding[];
  readonly identities: IdentitiesPolicy | null;
}

/** @param roles the roles of the policy next to the file; null if they cannot be read */
export function checkIdentities(file: NamedPolicyFile, roles: ReadonlySet<string> | null): IdentitiesCheck {
  const read = readPolicyFile(file, IdentitiesPolicy);
  if (read.value === null) return { findings: read.findings, identities: null };
  const { value, document } = read;
  const findings = [...inconsistenciesIn(value, roles)].map(({ pointer, rule, message }) => ({
    file: file.path,
    line: document.lineOf(pointer),
    rule,
    message,
  }));
  return { findings, identities: findings.length === 0 ? value : null };
}

/** @throws PolicyError POLICY_INVALID with the first findings in its message */
export function loadIdentities(file: NamedPolicyFile, roles: ReadonlySet<string> | null): IdentitiesPolicy {
  const { findings, identities } = checkIdentities(file, roles);
  if (identities !== null) return identities;
  const message = `identities.yaml is invalid: ${findings.slice(0, 5).map(formatFinding).join('; ')}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

interface IdentityInconsistency {
  readonly pointer: string;
  readonly rule: (typeof IDENTITY_RULES)[number];
  readonly message: string;
}

function* inconsistenciesIn(
  { issuers, tokens = [] }: IdentitiesPolicy,
  roles: ReadonlySet<string> | null,
): Generator<IdentityInconsistency> {
  const seenIssuers = new Set<string>();
  for (const [at, { issuer, mappings }] of issuers.entries()) {
    const pointer = `/issuers/${at}`;
    if (seenIssuers.has(issuer)) {
      yield { pointer, rule: 'identity.duplicate_issuer', message: `${quoteForMessage(issuer)} is there twice` };
    }
    seenIssuers.add(issuer);
    const seen = new Set<string>();
    for (const [index, mapping] of mappings.entries()) {
      yield* checkMapping(mapping, `${pointer}/mappings/${index}`, seen, roles);
    }
  }
  const seenActors = new Set<string>();
  for (const [at, { actor }] of tokens.entries()) {
    const message = `${quoteForMessage(actor)} is mapped twice`;
    if (seenActors.has(actor)) yield { pointer: `/tokens/${at}`, rule: 'identity.duplicate_token', message };
    seenActors.add(actor);
  }
}

function* checkMapping(
  { id, role, rights, person, case: case_id }: IdentityMapping,
  pointer: string,
  seen: Set<string>,
  roles: ReadonlySet<string> | null,
): Generator<IdentityInconsistency> {
  const mapping = `mapping ${quoteForMessage(id)}`;
  if (seen.has(id)) yield { pointer, rule: 'identity.duplicate_mapping', message: `${mapping} is there twice` };
  seen.add(id);
  if (roles?.has(role) === false) {
    const message = `${mapping} gives the role ${quoteForMessage(role)}, which is not in the roles`;
    yield { pointer: `${pointer}/role`, rule: 'identity.unknown_role', message };
  }
  if (case_id !== 'any' && rights.some((right) => CROSS_CASE_RIGHTS.has(right))) {
    const message = `${mapping} keeps to one case, but gives a right that reaches all cases (observe, sessions)`;
    yield { pointer: `${pointer}/rights`, rule: 'identity.cross_case_right', message };
  }
  if (person === undefined && rights.some((right) => right === 'approve' || right === 'govern')) {
    const message = `${mapping} gives approve or govern, but does not say which person it is`;
    yield { pointer: `${pointer}/rights`, rule: 'identity.person_missing', message };
  }
}
