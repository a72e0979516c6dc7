// Decides which actor a caller is, from the claims that an issuer has signed (C98). The first mapping whose conditions
// hold counts; a caller without a matching mapping is refused.

import type { Json, JsonObject } from '../../core/contract/json.js';
import type { IdentitiesPolicy, IdentityMapping } from '../../core/contract/policy/identities.js';
import { CaseId } from '../../core/contract/shapes.js';
import { CROSS_CASE_RIGHTS, type Right } from '../../core/contract/token.js';
import { isConforming } from '../../core/contract/validators.js';

/** What an issuer says of a caller. */
interface CallerClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: JsonObject;
}

/** An actor as policy maps it. The names are not checked yet. */
export interface MappedCaller {
  readonly mapping_id: string;
  readonly actor: string;
  readonly person: string | null;
  readonly role: string;
  /** The only case in which the caller may act; null for any. */
  readonly case: string | null;
  readonly rights: ReadonlySet<Right>;
}

type MappingProblem = 'unmapped' | 'claim_missing';
type MappingResult = { readonly caller: MappedCaller } | { readonly problem: MappingProblem };

export function mapClaims({ issuers }: IdentitiesPolicy, caller: CallerClaims): MappingResult {
  const mappings = issuers.find(({ issuer }) => issuer === caller.issuer)?.mappings ?? [];
  const mapping = mappings.find((candidate) => isMatching(candidate, caller));
  return mapping === undefined ? { problem: 'unmapped' } : applyMapping(mapping, caller.claims);
}

/** The person behind an actor of the token book; null if policy maps it to none. */
export const personOfToken = ({ tokens = [] }: IdentitiesPolicy, actor: string): string | null =>
  tokens.find((token) => token.actor === actor)?.person ?? null;

function isMatching({ claims = {}, subjects }: IdentityMapping, caller: CallerClaims): boolean {
  if (subjects?.includes(caller.subject) === false) return false;
  return Object.entries(claims).every(([name, values]) => {
    const given = claimOf(caller.claims, name);
    const all: readonly (Json | undefined)[] = Array.isArray(given) ? given : [given];
    return values.some((value) => all.includes(value));
  });
}

/** A claim that the mapping needs and the token lacks makes it fail: a later mapping could give more. */
function applyMapping(mapping: IdentityMapping, claims: JsonObject): MappingResult {
  const actor = nameOf(mapping.actor, claims);
  const person = mapping.person === undefined ? null : nameOf(mapping.person, claims);
  const case_id = caseOf(mapping.case, claims);
  if (actor === undefined || person === undefined || case_id === undefined) return { problem: 'claim_missing' };
  const rights = mapping.rights.filter((right) => case_id === null || !CROSS_CASE_RIGHTS.has(right));
  const { id: mapping_id, role } = mapping;
  return { caller: { mapping_id, actor, person, role, case: case_id, rights: new Set(rights) } };
}

/** Undefined if the claim is missing or not a text. */
function nameOf(name: IdentityMapping['actor'], claims: JsonObject): string | undefined {
  if ('name' in name) return name.name;
  const given = claimOf(claims, name.claim);
  return typeof given === 'string' ? given : undefined;
}

function caseOf(given: IdentityMapping['case'], claims: JsonObject): string | null | undefined {
  if (given === ANY_CASE) return null;
  if (typeof given === 'string') return given;
  const claim = claimOf(claims, given.claim);
  return typeof claim === 'string' && isConforming(CaseId, claim) ? claim : undefined;
}

const ANY_CASE = 'any';

const claimOf = (claims: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(claims, name) ? claims[name] : undefined;
