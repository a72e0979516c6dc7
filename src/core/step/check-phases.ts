// The result of the phases so far for one proposal, and the functions that run the checking phases.
//
// Invariants:
//   D1. `raw`, `text` and `value` live only between two phases of one macrostep; every snapshot has them null, so a
//       snapshot is plain JSON and holds no payload.
//   D2. `fault` and `phase_failed_at` are set together, once, by the first phase that rejects (S0-13).
//   D3. `reasoning` is stored as hash and length only: no later phase can read it (S0-67).

import type { SeenProposal } from '../contract/run/entry.js';
import { type Fault, passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import { type Json, type JsonObject, scanJson, isJsonObject, canonicalJson } from '../contract/json.js';
import { PHASES, type Phase } from '../contract/run/phase.js';
import type { CheckDescription } from '../policy/verdict.js';
import type { Policy } from '../policy/policy.js';
import { explainArgumentFault, explainProposalFault } from './explanation/explain-fault.js';
import type { ArgsSummary } from '../contract/run/step-trace.js';
import { Compile } from 'typebox/compile';
import { sha256 } from '../contract/hash.js';
import { Proposal, SCHEMA_VERSION_CHARS_MAX, UUID_PATTERN } from '../contract/run/proposal.js';
import type { ActionDefinition } from '../contract/policy/catalogue.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { isSchemaInstance } from '../contract/policy/registered-schema.js';
import { checkRegisteredArgs } from './mediated-request.js';
import { canonicalizePath, isExtensionAllowed, pathOptionsOf, checkSandboxPath } from '../policy/sandbox-path.js';
import { hashText } from '../contract/free-text.js';

export const CHECK_PHASES = [
  'RECEIVE',
  'PARSE',
  'VALIDATE_SCHEMA',
  'VALIDATE_ACTION',
  'VALIDATE_ARGS',
] as const satisfies readonly Phase[];
export type CheckPhase = (typeof CHECK_PHASES)[number];

export interface StepDraft {
  /** Null at RECEIVE for a payload over the limit, whose bytes are not stored (C80); null in every later phase. */
  readonly raw: Uint8Array | null;
  readonly text: string | null;
  readonly value: Json;
  readonly payload_sha256: string;
  readonly seen: SeenProposal | null;
  readonly identity: Identity;
  /** The name of the action, once VALIDATE_ACTION has passed. */
  readonly action: string | null;
  /** The arguments, once VALIDATE_ARGS has passed; until then the unchecked value. */
  readonly args: JsonObject | null;
  readonly args_summary: ArgsSummary | null;
  readonly replay_of: number | null;
  readonly fault: Fault | null;
  readonly phase_failed_at: Phase | null;
}

export const newStepDraft = (raw: Uint8Array | null, payload_sha256: string, seen: SeenProposal | null): StepDraft => ({
  raw,
  text: null,
  value: null,
  payload_sha256,
  seen,
  identity: UNKNOWN_IDENTITY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
});

/** The claims of the checking phases in order, as `policy explain` prints them. */
export const VALIDATION_CHECKS: readonly (CheckDescription & { readonly phase: CheckPhase })[] = [
  { phase: 'RECEIVE', claim: 'the payload is UTF-8 text within its limits', rules: ['payload.*'] },
  { phase: 'PARSE', claim: 'the payload is JSON', rules: ['json.*'] },
  { phase: 'VALIDATE_SCHEMA', claim: 'the payload is a proposal', rules: ['schema.*'] },
  { phase: 'VALIDATE_SCHEMA', claim: 'the proposal id is new', rules: ['proposal.*'] },
  { phase: 'VALIDATE_ACTION', claim: 'the action is listed', rules: ['action.*'] },
  { phase: 'VALIDATE_ARGS', claim: 'the arguments match the schema of the action', rules: ['args.*', 'path.*'] },
];

/**
 * Runs checking phases in order, from `draft`, until one rejects the proposal or recognizes it as a repeated one. The
 * step machine runs the same phases one state at a time; recovery and `policy simulate` use this function.
 */
export function runCheckPhases<Draft extends StepDraft>(
  draft: Draft,
  policy: Policy,
  phases: readonly CheckPhase[] = CHECK_PHASES,
): Draft {
  const checked = { ...draft };
  for (const phase of phases) {
    Object.assign(checked, runCheckPhase(phase, checked, policy));
    if (checked.fault !== null || checked.replay_of !== null) break;
  }
  return checked;
}

/** The phases that find out who proposes what; they need neither an action's definition nor a verdict. */
export const IDENTITY_PHASES = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA'] as const satisfies readonly CheckPhase[];

/** The phase that follows a checking phase that passes (S0-12). */
// Stryker disable next-line StringLiteral: no checking phase is the last phase
export const phaseAfter = (phase: CheckPhase): Phase => PHASES[PHASES.indexOf(phase) + 1] ?? 'RECORD';

/** Whether a checking phase has rejected it. */
export const isInvalid = ({ phase_failed_at }: Pick<StepDraft, 'phase_failed_at'>): boolean =>
  (CHECK_PHASES as readonly (Phase | null)[]).includes(phase_failed_at);

/** Runs one phase. @returns the changed members, or the rejection; never throws for a payload */
export function runCheckPhase(phase: CheckPhase, draft: StepDraft, policy: Policy): Partial<StepDraft> {
  switch (phase) {
    case 'RECEIVE': {
      const received = draft.raw === null ? TOO_LARGE : receive(draft.raw, policy);
      return received.ok
        ? { raw: null, text: received.value }
        : { raw: null, fault: received.fault, phase_failed_at: phase };
    }
    case 'PARSE': {
      // Stryker disable next-line StringLiteral: neither text is JSON
      const parsed = parse(draft.text ?? '', policy);
      return parsed.ok
        ? { text: null, value: parsed.value }
        : { text: null, fault: parsed.fault, phase_failed_at: phase };
    }
    case 'VALIDATE_SCHEMA':
      return checkSchema(draft, policy);
    case 'VALIDATE_ACTION': {
      // Stryker disable next-line StringLiteral: neither name is an action
      const checked = validateAction(draft.action ?? '', policy);
      return checked.ok ? { action: checked.value.name } : { fault: checked.fault, phase_failed_at: phase };
    }
    case 'VALIDATE_ARGS':
      return checkArgs(draft, policy);
  }
}

function checkSchema({ value, seen, payload_sha256 }: StepDraft, policy: Policy): Partial<StepDraft> {
  const identity = identify(value, policy);
  const checked = validateSchema(value);
  if (!checked.ok) {
    const fault = explainProposalFault(checked.fault, value);
    return { value: null, identity, fault, phase_failed_at: 'VALIDATE_SCHEMA' };
  }
  // The next phase needs the name even if the response must not echo it (C06).
  const { args, action } = checked.value;
  const args_summary = summarizeArgs(null, args, argumentNameRecorder(action, policy));
  const unused = validateProposalId(seen, payload_sha256, policy);
  return unused.ok
    ? { value: null, identity, action, args, args_summary, replay_of: unused.value.replay_of }
    : { value: null, identity, action, args, args_summary, fault: unused.fault, phase_failed_at: 'VALIDATE_SCHEMA' };
}

function checkArgs(draft: StepDraft, policy: Policy): Partial<StepDraft> {
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = policy.catalogue.action(draft.action ?? '');
  if (definition === undefined) return { args: null };
  const args = draft.args ?? {};
  const checked = validateArgs(definition, args, policy);
  if (checked.ok) return { args: checked.value, args_summary: summarizeArgs(definition, checked.value) };
  const fault = explainArgumentFault(checked.fault, definition, args, policy);
  return { fault, phase_failed_at: 'VALIDATE_ARGS' };
}

/** Fatal for invalid UTF-8. It keeps a byte order mark, so that PARSE can reject it (C12). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** C80: rejects a payload over the limit, whether its bytes are available or not. */
export const TOO_LARGE: CheckedValue<never> = rejectWith('PAYLOAD_TOO_LARGE', 'payload.bytes_max');

/**
 * RECEIVE: decodes the raw bytes of one proposal, which are attacker-controlled and stay unchanged. It checks the size
 * before it decodes anything (C11). A payload of white space counts as empty (C13).
 *
 * @returns the text, or EMPTY_PAYLOAD, PAYLOAD_TOO_LARGE, INVALID_ENCODING
 */
export function receive(payload: Uint8Array, policy: Policy): CheckedValue<string> {
  if (payload.byteLength > policy.limits.payload_bytes_max) return TOO_LARGE;
  const text = decode(payload);
  if (text === null) return rejectWith('INVALID_ENCODING', 'payload.not_utf8');
  return isBlank(text) ? rejectWith('EMPTY_PAYLOAD', 'payload.blank') : passWith(text);
}

function decode(payload: Uint8Array): string | null {
  try {
    return UTF8.decode(payload);
  } catch {
    return null;
  }
}

/** `trim` removes a byte order mark as white space, but PARSE must reject it. */
const isBlank = (text: string): boolean => text.trim() === '' && !text.includes('\ufeff');

/** Everything that the result of a parse depends on: the key of the cache. */
interface ParseRequest {
  readonly text: string;
  readonly depth_max: number;
}

/** The last parse. Each proposal is parsed twice in a row: for its id, and then in PARSE. */
let cachedParse: { readonly of: ParseRequest; readonly parsed: CheckedValue<Json> } | null = null;

/** PARSE: one strict JSON value, of any type (C14). @returns the value, or INVALID_JSON */
export function parse(text: string, { limits }: Policy): CheckedValue<Json> {
  const depth_max = limits.payload_depth_max;
  const known = cachedParse;
  if (known?.of.text === text && known.of.depth_max === depth_max) return known.parsed;
  const scanned = scanJson(text, depth_max, 'exact');
  const parsed = scanned.ok ? passWith(scanned.value) : rejectWith('INVALID_JSON', `json.${scanned.problem}`);
  cachedParse = { of: { text, depth_max }, parsed };
  return parsed;
}

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

/**
 * VALIDATE_ACTION: checks that the policy's allowlist contains the action and that it exists. Names are compared
 * exactly: case folding would accept `ﬁnish` or `thınk` (C16).
 *
 * @returns the definition, or ACTION_NOT_ALLOWED
 */
export function validateAction(action: string, policy: Policy): CheckedValue<ActionDefinition> {
  if (!policy.actions.has(action)) return rejectWith('ACTION_NOT_ALLOWED', 'action.not_in_allowlist');
  const definition = policy.catalogue.action(action);
  return definition === undefined ? rejectWith('ACTION_NOT_ALLOWED', 'action.not_in_catalogue') : passWith(definition);
}

const validators = new WeakMap<ActionDefinition, ReturnType<typeof Compile>>();

/** Compiles each definition once: compilation takes a hundred times as long as a check. */
function validatorOf(definition: ActionDefinition): ReturnType<typeof Compile> {
  const known = validators.get(definition);
  if (known !== undefined) return known;
  const validator = Compile(definition.args);
  validators.set(definition, validator);
  return validator;
}

/**
 * VALIDATE_ARGS: checks the action's schema, the length of content, and the text of every path (S0-39 to S0-45).
 * AUTHORIZE decides whether a path may be used. This phase checks extensions only if the policy says so (C23).
 *
 * @returns the proposed arguments, unchanged, or INVALID_ARGS
 */
export function validateArgs(definition: ActionDefinition, args: JsonObject, policy: Policy): CheckedValue<JsonObject> {
  if (!hasValidSchema(definition, args, policy)) return rejectWith('INVALID_ARGS', 'args.schema');
  const refused = checkRegisteredArgs(definition, args, policy.catalogue);
  if (refused !== null) return refused;
  const { content } = args;
  if (typeof content === 'string' && Buffer.byteLength(content) > policy.limits.content_bytes_max) {
    return rejectWith('INVALID_ARGS', 'args.content_bytes_max');
  }
  for (const name of definition.paths) {
    const path = args[name];
    if (typeof path !== 'string') return rejectWith('INVALID_ARGS', 'args.path_type');
    const checked = checkSandboxPath(path, pathOptionsOf(definition, policy));
    if (!checked.ok) return checked;
    if (policy.knobs.extensions_stage === 'validate' && !isEndingAllowed(definition, name, path, policy)) {
      return rejectWith('INVALID_ARGS', 'args.extension_not_allowed');
    }
  }
  return passWith(args);
}

/** The schema of a registered action comes from the embedding service, so it is interpreted, never compiled to code. */
const hasValidSchema = (definition: ActionDefinition, args: JsonObject, { catalogue }: Policy): boolean =>
  catalogue.registrations.actions.some(({ name }) => name === definition.name)
    ? isSchemaInstance(definition.args as unknown as JsonSchema, args)
    : validatorOf(definition).Check(args);

/** Checks the extension of the canonical path (C26). A path without a canonical form passes: AUTHORIZE denies it. */
function isEndingAllowed(definition: ActionDefinition, name: string, path: string, policy: Policy): boolean {
  const endings = policy.actions.get(definition.name)?.extensions?.[name];
  if (endings === undefined) return true;
  const canonical = canonicalizePath(path, pathOptionsOf(definition, policy));
  return !canonical.ok || isExtensionAllowed(canonical.value, endings);
}

/** Limits for unvalidated arguments: the number of recorded names, and the UTF-16 code units of each. */
const SUMMARY_KEYS_MAX = 16;
const SUMMARY_KEY_CHARS_MAX = 64;

/**
 * Summarizes the arguments of a step for its trace (C37), without content (S4-62).
 *
 * @param definition the action's definition once VALIDATE_ARGS has passed: the summary then contains paths verbatim,
 *   and hash and length of every other argument. Null if the arguments are unvalidated: the summary then contains only
 *   the first names.
 * @param toRecordedName returns the name as the trace records it
 * @returns null if there are no arguments
 */
export function summarizeArgs(
  definition: ActionDefinition | null,
  args: Json | undefined,
  toRecordedName: (name: string) => string = (name) => name,
): ArgsSummary | null {
  if (!isJsonObject(args)) return null;
  return definition === null ? namesOf(args, toRecordedName) : summaryOf(definition, args);
}

function namesOf(args: JsonObject, toRecordedName: (name: string) => string): ArgsSummary {
  const keys: string[] = [];
  for (const name of Object.keys(args)) {
    const shown = toRecordedName(name);
    if (keys.push(shown === name ? truncateKey(name) : shown) === SUMMARY_KEYS_MAX) break;
  }
  return { keys };
}

function summaryOf(definition: ActionDefinition, args: JsonObject): ArgsSummary {
  const summary: Record<string, string | Digest> = {};
  for (const name of Object.keys(definition.args.properties)) {
    const value = args[name];
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : canonicalJson(value);
    summary[name] = definition.paths.includes(name) ? text : digestOf(text);
  }
  return summary;
}

interface Digest {
  readonly sha256: string;
  readonly bytes: number;
}

const digestOf = (text: string): Digest => ({ sha256: sha256(text), bytes: Buffer.byteLength(text) });

/** Removes half a surrogate pair at the end, which the ledger could not store. */
function truncateKey(key: string): string {
  const head = key.slice(0, SUMMARY_KEY_CHARS_MAX);
  return head.isWellFormed() ? head : head.slice(0, -1);
}

// Names in a proposal: entries contain the names that the platform knows, and hashes of all others (S4-62, C90).

const VERSION = /^\d{1,6}\.\d{1,6}\.\d{1,6}$/;

/** The action and schema version of a payload as its trace records them. */
export function recordedIdentity(
  { action, schema_version }: Identity,
  policy: Policy,
): Pick<Identity, 'action' | 'schema_version'> {
  const isKnown = action === null || policy.actions.has(action) || policy.catalogue.action(action) !== undefined;
  return {
    action: isKnown ? action : hashText(action),
    schema_version: schema_version === null || VERSION.test(schema_version) ? schema_version : hashText(schema_version),
  };
}

/** Returns how to record names of unvalidated arguments: those in the action's schema stay, others are hashed. */
export function argumentNameRecorder(action: string, policy: Policy): (name: string) => string {
  const properties = policy.catalogue.action(action)?.args.properties ?? {};
  return (name) => (Object.hasOwn(properties, name) ? name : hashText(name));
}
