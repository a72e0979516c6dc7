import { Compile } from 'typebox/compile';
import type { SeenProposal } from '../contract/run/entry.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import { sha256 } from '../contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../contract/json.js';
import { Proposal, SCHEMA_VERSION_CHARS_MAX, UUID_PATTERN } from '../contract/run/proposal.js';
import type { Policy } from '../policy/policy.js';
import { parse } from './parse.js';
import { receive } from './receive.js';

/** The identifying fields of a payload that a response may echo and a trace may record. */
export interface Identity {
  readonly proposal_id: string | null;
  readonly action: string | null;
  readonly schema_version: string | null;
  /** Hash, and length in code points. The text is only in the raw payload, and no decision reads it (S0-67). */
  readonly reasoning: { readonly sha256: string; readonly chars: number } | null;
}

export const UNKNOWN_IDENTITY: Identity = { proposal_id: null, action: null, schema_version: null, reasoning: null };

const UUID = new RegExp(UUID_PATTERN);
/** An unknown action is attacker-controlled text, so it is echoed only if it has the form of an action name (C06). */
const ACTION_LIKE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/** A well-formed version with a major other than 1. */
const OTHER_MAJOR = /^(?:0|[2-9]|[1-9]\d+)\.\d+\.\d+$/;

const proposalSchema = Compile(Proposal);
const KEYS = Object.keys(Proposal.properties);

/** Returns the identifying fields of a parsed payload, valid or not. Each field is checked separately (C05, C06). */
export function identify(value: Json, policy: Policy): Identity {
  if (!isJsonObject(value)) return UNKNOWN_IDENTITY;
  const { id, action, schema_version, reasoning } = value;
  return {
    proposal_id: typeof id === 'string' && UUID.test(id) ? id : null,
    action: typeof action === 'string' && canBeEchoed(action, policy) ? action : null,
    schema_version:
      typeof schema_version === 'string' && schema_version.length <= SCHEMA_VERSION_CHARS_MAX ? schema_version : null,
    reasoning: typeof reasoning === 'string' ? { sha256: sha256(reasoning), chars: countCodePoints(reasoning) } : null,
  };
}

const canBeEchoed = (action: string, policy: Policy): boolean => policy.actions.has(action) || ACTION_LIKE.test(action);

/** The scanner rejects lone surrogates, so every low surrogate ends a pair. */
function countCodePoints(text: string): number {
  let count = text.length;
  // Stryker disable next-line EqualityOperator: the code behind the end is NaN, which is no surrogate
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0xdc00 && code <= 0xdfff) count--;
  }
  return count;
}

/**
 * VALIDATE_SCHEMA: checks that the value has exactly the five fields, each of its type (S0-27 to S0-33).
 * Requires a value from `scanJson`, because TypeBox counts inherited members as present (C18).
 *
 * @returns the proposal; SCHEMA_VERSION_INCOMPATIBLE for a well-formed version with another major, which may define
 *   other fields; or SCHEMA_VIOLATION
 */
export function validateSchema(value: Json): CheckedValue<Proposal> {
  if (proposalSchema.Check(value)) return passWith(value);
  if (!isJsonObject(value)) return rejectWith('SCHEMA_VIOLATION', 'schema.not_an_object');
  const { schema_version } = value;
  if (
    typeof schema_version === 'string' &&
    schema_version.length <= SCHEMA_VERSION_CHARS_MAX &&
    OTHER_MAJOR.test(schema_version)
  ) {
    return rejectWith('SCHEMA_VERSION_INCOMPATIBLE', 'schema.other_major');
  }
  return rejectWith('SCHEMA_VIOLATION', `schema.${problemOf(value)}`);
}

/** Does not use the error list of the library: its order and wording would become part of the recorded rule id. */
function problemOf(value: JsonObject): string {
  const missing = KEYS.find((key) => value[key] === undefined);
  if (missing !== undefined) return `missing_${missing}`;
  return Object.keys(value).length > KEYS.length ? 'unknown_field' : 'invalid_field';
}

/**
 * The last check of VALIDATE_SCHEMA: a proposal id may occur once in a tree (C19).
 * @returns the index of the step whose recorded response answers this proposal, null for a new id, or
 *   DUPLICATE_PROPOSAL_ID
 */
export function validateProposalId(
  seen: SeenProposal | null,
  payload_sha256: string,
  policy: Policy,
): CheckedValue<{ replay_of: number | null }> {
  if (seen === null) return passWith({ replay_of: null });
  if (policy.knobs.duplicate_proposal_ids === 'reject') return rejectWith('DUPLICATE_PROPOSAL_ID', 'proposal.id_used');
  if (seen.payload_sha256 !== payload_sha256) {
    return rejectWith('DUPLICATE_PROPOSAL_ID', 'proposal.id_used_by_another_payload');
  }
  return seen.response === null
    ? rejectWith('DUPLICATE_PROPOSAL_ID', 'proposal.response_not_at_hand')
    : passWith({ replay_of: seen.step_index });
}

/**
 * The key under which the ledger marks a proposal id as used: in lower case, because ids compare without case (C17).
 * @returns null for a payload that fails RECEIVE, PARSE or the schema: the ledger does not mark its id (C19)
 */
export function proposalKey(payload: Uint8Array, policy: Policy): string | null {
  const text = receive(payload, policy);
  if (!text.ok) return null;
  const value = parse(text.value, policy);
  // Stryker disable next-line ConditionalExpression: without a value there is no proposal either
  if (!value.ok) return null;
  const proposal = validateSchema(value.value);
  return proposal.ok ? proposal.value.id.toLowerCase() : null;
}
