// Finds careless mappings in a valid identities.yaml. As with the other files, nothing here affects a run.

import type { IdentitiesPolicy, IdentityMapping, IssuerMappings } from '../../core/contract/policy/identities.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { checkIdentities } from '../../home/policy/check-identities.js';
import { readPolicyYaml, type NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import type { Policy } from '../../core/policy/policy.js';
import type { LintMessage } from '../../home/policy/policy-linter.js';
import { toLintMessage, type LintFinding } from './lint-rules.js';

/** OpenID Connect Core, 5.7: users may change these, and an issuer may give them to other users later. */
const CHANGEABLE: readonly string[] = [
  'name',
  'given_name',
  'family_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'email',
  'upn',
  'unique_name',
];

type IdentityCaution = Omit<LintFinding, 'name'>;

/** @param policy the policy next to the file; null if it is not valid */
export function lintIdentities(file: NamedPolicyFile, policy: Policy | null): readonly LintMessage[] {
  const { identities } = checkIdentities(file, null);
  const { document } = readPolicyYaml(file.bytes);
  if (identities === null || document === null) return [];
  return [...cautionsIn(identities, policy)].map((caution) => toLintMessage(caution, file.path, document));
}

function* cautionsIn({ issuers }: IdentitiesPolicy, policy: Policy | null): Generator<IdentityCaution> {
  for (const [at, { mappings }] of issuers.entries()) {
    for (const [index, mapping] of mappings.entries()) {
      yield* cautionsOf(mapping, `/issuers/${at}/mappings/${index}`);
    }
  }
  yield* sharedActors(issuers);
  if (!issuers.some(({ mappings }) => mappings.some(({ rights }) => rights.includes('approve')))) return;
  for (const { for: subject, identity } of policy?.approvals ?? []) {
    if (identity !== undefined) continue;
    const message = `approvals of ${quoteForMessage(subject)} also take votes that no issuer has authenticated`;
    yield { pointer: '/issuers', rule: 'identity.unverified_votes', severity: 'warning', message };
  }
}

/** An actor of one issuer is that of another with the same name, and reaches its runs. One finding for two issuers. */
function* sharedActors(issuers: readonly IssuerMappings[]): Generator<IdentityCaution> {
  for (const [at, { issuer, mappings }] of issuers.entries()) {
    for (const before of issuers.slice(0, at)) {
      const index = mappings.findIndex((mapping) => before.mappings.some((other) => canShareActor(mapping, other)));
      if (index === -1) continue;
      const both = `${quoteForMessage(issuer)} and ${quoteForMessage(before.issuer)}`;
      const message = `users of ${both} can be the same actor, because both take the actor from a claim`;
      const pointer = `/issuers/${at}/mappings/${index}/actor`;
      yield { pointer, rule: 'identity.shared_actor', severity: 'warning', message };
    }
  }
}

function canShareActor(one: IdentityMapping, other: IdentityMapping): boolean {
  if (!('claim' in one.actor) || !('claim' in other.actor)) return false;
  const [names, others] = [actorNames(one, one.actor.claim), actorNames(other, other.actor.claim)];
  return names === null || others === null || names.some((name) => others.includes(name));
}

/** The values that a claim can have where the mapping matches; null: any. */
function actorNames({ claims = {}, subjects }: IdentityMapping, claim: string): readonly unknown[] | null {
  return claim === 'sub' && subjects !== undefined ? subjects : (claims[claim] ?? null);
}

function* cautionsOf(
  { id, claims = {}, subjects, actor, person }: IdentityMapping,
  pointer: string,
): Generator<IdentityCaution> {
  const mapping = `mapping ${quoteForMessage(id)}`;
  if (Object.keys(claims).length === 0 && subjects === undefined) {
    yield { pointer, rule: 'identity.matches_everyone', severity: 'error', message: `${mapping} has no condition` };
  }
  // Runs belong to the name of their actor, so an actor that a user can choose reaches the runs of another.
  for (const [member, name] of [['actor', actor] as const, ['person', person] as const]) {
    if (name === undefined || !('claim' in name) || !CHANGEABLE.includes(name.claim)) continue;
    const message = `${mapping} takes the ${member} from ${quoteForMessage(name.claim)}, which users may change`;
    yield { pointer: `${pointer}/${member}`, rule: 'identity.changeable_claim', severity: 'error', message };
  }
}
