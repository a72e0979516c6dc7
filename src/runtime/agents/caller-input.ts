// Checks what a caller gives to submit a proposal or to open a run, and makes an input of it. Free text becomes an
// artifact of its case, with a reference or hash in the entry (S4-62, C90).

import type { TSchema } from 'typebox';
import { type Artifact, artifactRef, type ArtifactRef } from '../../core/contract/artifact-ref.js';
import { BUDGET_KINDS, BudgetLimits } from '../../core/contract/run/budget.js';
import { PolicyName } from '../../core/contract/policy/policy-header.js';
import { Identifier, TaxonomyVersions } from '../../core/contract/shapes.js';
import { AGENT_LINKS, INPUT_ID_CHARS_MAX } from '../../core/contract/run/entry.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { findTextProblem } from '../../core/contract/text-rule.js';
import { isIdentifier, toCancelReason, toRecordedScopeValue } from '../../core/contract/free-text.js';
import { EXPOSURES, type Exposure } from '../../core/contract/run/response.js';
import { compareNames, POLICY_NAMES_MAX, type Likeness, type Person } from '../../core/contract/person.js';
import { isConforming } from '../../core/contract/validators.js';
import type { NewInput } from '../../engine/tree-engine.js';
import { usageError } from '../../core/errors.js';
import { NAME_PROBLEMS, personOf } from '../../names/person-name.js';
import type { Policy } from '../../core/policy/policy.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { AgentOptions, SubmitOptions } from './agent-run.js';
import type { PinnedPolicy } from '../policy-cache.js';
import { sha256 } from '../../core/contract/hash.js';
import type { RunContext } from '../../core/contract/run/run-context.js';

export type InputOf<Kind extends NewInput['kind']> = Extract<NewInput, { kind: Kind }>;

/**
 * The largest accepted payload. Policy limits are far lower; a payload that policy rejects is stored, in whole or as a
 * prefix.
 */
export const PAYLOAD_BYTES_CEILING = 33_554_432;

/**
 * The bytes of a raw payload, exactly as they are recorded (S0-17). A string with a lone surrogate has no UTF-8 form:
 * its surrogates become three bytes each, so that RECEIVE sees, and rejects, exactly what was sent.
 * @throws UsageError for more than 32 MiB, and for anything else than text and bytes
 */
export function payloadBytes(raw: string | Uint8Array): Uint8Array {
  const given: unknown = raw;
  if (typeof given !== 'string' && !(given instanceof Uint8Array)) throw usageError('payload: a text or bytes');
  const bytes =
    typeof raw !== 'string' ? Uint8Array.from(raw) : raw.isWellFormed() ? Buffer.from(raw) : encodeWtf8(raw);
  if (bytes.byteLength > PAYLOAD_BYTES_CEILING) {
    throw usageError(`a payload has at most ${PAYLOAD_BYTES_CEILING} bytes`);
  }
  return bytes;
}

function encodeWtf8(text: string): Uint8Array {
  const parts = Array.from(text, (char) => {
    if (char.isWellFormed()) return Buffer.from(char);
    const unit = char.charCodeAt(0);
    return Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)]);
  });
  return Buffer.concat(parts);
}

/** @throws UsageError for an invalid request id or number of tokens */
export function checkSubmitOptions(run_id: string, { inputId, tokens }: SubmitOptions): void {
  checkInputId(run_id, inputId);
  checkTokens(tokens);
}

/**
 * Checks a caller's request id.
 * @throws UsageError for an id that the ledger cannot store, or that is reserved for the engine
 */
export function checkInputId(run_id: string, inputId: string | undefined): void {
  if (inputId === undefined) return;
  const { length } = inputId;
  if (length >= 1 && length <= INPUT_ID_CHARS_MAX && inputId.isWellFormed() && !inputId.startsWith(`${run_id}/`))
    return;
  throw usageError(`inputId: 1 to ${INPUT_ID_CHARS_MAX} characters, not beginning with the run's own id and /`);
}

/** @throws UsageError for an invalid number of tokens */
export function checkTokens(tokens: number | undefined): void {
  if (tokens === undefined || (Number.isSafeInteger(tokens) && tokens >= 0)) return;
  throw usageError('tokens: a whole number, 0 or more');
}

/** A caller's request id counts as an identifier if it is printable ASCII without spaces. */
const PRINTABLE = /^[\x21-\x7e]+$/;
export const isPrintable = (inputId: string): boolean => PRINTABLE.test(inputId);

/** The id under which a request is recorded. */
export const toRecordedInputId = (inputId: string | undefined): string | undefined =>
  inputId === undefined ? undefined : hashInputId(inputId);

/** The recorded id of a request: the id itself, or its hash if it may be text. */
const hashInputId = (inputId: string): string => (isPrintable(inputId) ? inputId : `id:${sha256(inputId)}`);

/** Every id that a request may have been recorded under. */
export function inputKeysOf(tree_id: string, inputId: string | undefined) {
  const ids = inputId === undefined ? [] : [...new Set([inputId, hashInputId(inputId)])];
  return ids.map((input_id) => ({ tree_id, input_id }));
}

const PROMPTS_MAX = 16;
export const PROMPT_BYTES_MAX = 4_194_304;

/** The prompt of a proposal, or the event that it is made of: its reference, and the artifact after the payload. */
export function createProposalPrompt(
  { prompt, hookEvent }: Pick<SubmitOptions, 'prompt' | 'hookEvent'>,
  case_id: string | null,
) {
  const text = hookEvent ?? prompt;
  const kind = hookEvent === undefined ? 'prompt' : 'hook_event';
  const [found] = createPrompts(text === undefined ? [] : [text], case_id);
  if (found === undefined) return { refers: {}, materials: [] };
  const material: Artifact = { ...found, kind };
  return { refers: { prompt: artifactRef(material) }, materials: [material] };
}

/** The start prompts of an agent: references for its first input, and their artifacts. */
export function createStartPrompts(texts: readonly string[], case_id: string | null) {
  const prompts = createPrompts(texts, case_id);
  return { refers: prompts.length === 0 ? {} : { given: prompts.map(artifactRef) }, prompts };
}

/**
 * Prompts as artifacts of their case.
 * @throws UsageError for too many or too long prompts
 */
function createPrompts(prompts: readonly string[], case_id: string | null): readonly Artifact[] {
  const isWithinLimits = prompts.every(
    (text) => typeof text === 'string' && Buffer.byteLength(text) <= PROMPT_BYTES_MAX,
  );
  if (prompts.length > PROMPTS_MAX || !isWithinLimits) {
    throw usageError('prompts: at most 16 texts, each of 4 MiB');
  }
  // Without a case the text could not be erased.
  if (case_id === null) return [];
  return [...new Set(prompts)].map((text) => ({ kind: 'prompt', case_id, bytes: Buffer.from(text.toWellFormed()) }));
}

/** The number of characters that are stored of one note. */
const NOTE_CHARS_MAX = 4_000;

/** A note of an input: its reference and its artifact. */
export interface Note {
  readonly references: { readonly note_ref?: ArtifactRef };
  readonly materials: readonly Artifact[];
}
const EMPTY_NOTE: Note = { references: {}, materials: [] };

/** @returns nothing for a missing text, and for a text without a case, which could not be erased */
export function createNote(text: string | null | undefined, case_id: string | null): Note {
  if (text === null || text === undefined || text === '' || case_id === null) return EMPTY_NOTE;
  const note: Artifact = {
    kind: 'note',
    case_id,
    bytes: Buffer.from(text.slice(0, NOTE_CHARS_MAX).toWellFormed()),
  };
  return { references: { note_ref: artifactRef(note) }, materials: [note] };
}

interface CancelledTree {
  readonly case_id: string | null;
  /** The feature that opened the tree; null for a run tree. */
  readonly rootFeature: object | null;
}

/**
 * The `cancel` of an agent run's tree, with its reason as a code or, in other words, as a note. Only the feature
 * that opened a tree may end its root runs: the handle of an agent run cancels that run alone (C93).
 */
export function createCancelInput(
  { run_id, root_run_id }: Pick<RunContext, 'run_id' | 'root_run_id'>,
  tree: CancelledTree | null,
  reason: string,
) {
  const code = toCancelReason(reason);
  const { references, materials } = code === reason ? EMPTY_NOTE : createNote(reason, tree?.case_id ?? null);
  const cancelled_run_id = tree?.rootFeature == null ? root_run_id : run_id;
  const input = {
    kind: 'cancel',
    run_id: cancelled_run_id,
    input_id: `${run_id}/cancel`,
    reason: code,
    ...references,
  } as const;
  return { input, materials };
}

// What a run tree and an agent begin with.

/** Defaults: the role and lane of the shipped policy for files in a sandbox. */
export const AGENT_DEFAULTS = {
  lane: 'SANDBOX_FILES',
  role: 'SANDBOX_AGENT',
  actor: 'agent',
} as const;
const IDLE_MS_DEFAULT = 900_000;
/** A hundred days. */
const IDLE_MS_MAX = 8_640_000_000;
const SCOPE_FIELDS_MAX = 32;

/** The first input of a tree, and its artifacts after the policies and machines. */
interface TreeOpening {
  readonly open: InputOf<'open'>;
  readonly notes: readonly Artifact[];
}

/** What a new run tree begins with. */
type OpeningOptions = Pick<AgentOptions, 'scope' | 'correlation' | 'taxonomy'> & {
  /** From `chooseCase`. */
  readonly case_id: string | null;
};

/**
 * The first input of a new run tree.
 * @throws UsageError for options that the contract cannot express
 */
export function createOpenInput(root: string, options: OpeningOptions, pinned: PinnedPolicy, ids: Ids): TreeOpening {
  const { case_id } = options;
  const { materials, ...scope } = createScopeNotes(validateScope(options.scope ?? {}), case_id);
  const open = {
    kind: 'open' as const,
    run_id: root,
    input_id: `${root}/open`,
    correlation_id: validateField('correlation', Identifier, options.correlation ?? ids.draw('cor_')),
    case_id,
    taxonomy_versions: options.taxonomy === undefined ? null : validateTaxonomy(options.taxonomy),
    ...scope,
    policies: pinned.pins,
    machines: pinned.machines,
  };
  return { open, notes: materials };
}

/** A scope as an `open` records it: identifiers verbatim, other values as hashes with their artifacts. */
export function createScopeNotes(scope: Readonly<Record<string, string>>, case_id: string | null) {
  const texts =
    case_id === null ? [] : Object.values(scope).filter((value) => value.trim() !== '' && !isIdentifier(value));
  const materials = [...new Set(texts)].map((text): Artifact => ({ kind: 'note', case_id, bytes: Buffer.from(text) }));
  const recorded = Object.entries(scope).map(([field, value]) => [field, toRecordedScopeValue(value)] as const);
  return {
    scope: Object.fromEntries(recorded),
    ...(materials.length === 0 ? {} : { notes: materials.map(artifactRef) }),
    materials,
  };
}

/** For an agent that shares the budgets of its tree with others. */
export interface SharingAgentOptions extends AgentOptions {
  /** Its budget: this part of what the policy gives the tree, above 0 and at most 1. Default: all that is left. */
  readonly budgetShare?: number;
}

export function createStartAgentInput(
  root: string,
  options: SharingAgentOptions,
  policy: Policy,
): InputOf<'start_agent'> {
  const link = requireOneOf('link', AGENT_LINKS, options.link ?? 'attached');
  return {
    kind: 'start_agent',
    run_id: root,
    input_id: `${root}/start_agent`,
    actor: { actor_type: 'agent', actor_id: validateActor(options.actor ?? AGENT_DEFAULTS.actor) },
    person: asNamedPerson(options, policy),
    role_id: validateRole(options.role ?? AGENT_DEFAULTS.role),
    lane_id: validateField('lane', Identifier, options.lane ?? AGENT_DEFAULTS.lane),
    exposure: narrowExposure(policy.exposure, requireOneOf('exposure', EXPOSURES, options.exposure ?? policy.exposure)),
    link,
    idle_ms: link === 'remote' ? validateIdle(options.idleMs ?? IDLE_MS_DEFAULT) : null,
    budget: budgetOf(options, policy),
  };
}

function budgetOf({ budget, budgetShare }: SharingAgentOptions, { budgets }: Policy): BudgetLimits | null {
  if (budget !== undefined) return validateBudget(budget);
  if (budgetShare === undefined) return null;
  const limited = BUDGET_KINDS.flatMap((kind) => {
    const limit = budgets[kind];
    return limit == null ? [] : [[kind, Math.ceil(limit * budgetShare)]];
  });
  return Object.fromEntries(limited) as BudgetLimits;
}

export function validateBudget(budget: BudgetLimits): BudgetLimits {
  if (isConforming(BudgetLimits, budget)) return { ...budget };
  throw usageError(`budget: whole numbers of ${BUDGET_KINDS.join(', ')}`);
}

/** D6: the policy is the ceiling; a caller may only show less. */
export const narrowExposure = (ceiling: Exposure, requested: Exposure): Exposure =>
  EXPOSURES.indexOf(requested) < EXPOSURES.indexOf(ceiling) ? ceiling : requested;

/** Callers without types may pass any value. */
export function requireOneOf<T extends string>(name: string, known: readonly T[], value: T): T {
  if (known.includes(value)) return value;
  throw usageError(`${name}: ${known.join(' or ')}`);
}

export function validateTaxonomy(taxonomy: TaxonomyVersions): TaxonomyVersions {
  const versions = Object.values(taxonomy) as readonly unknown[];
  if (isConforming(TaxonomyVersions, taxonomy) && versions.every((version) => isIdentifier(version as string))) {
    return { ...taxonomy };
  }
  throw usageError('taxonomy: `coa`, `tags` and `entities`, each an identifier of 120 characters at most');
}

export function validateScope(scope: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(scope);
  for (const [key] of entries) validateField('scope', PolicyName, key);
  const isValid = entries.every(([, value]) => value.length <= 400 && value.isWellFormed());
  if (entries.length > SCOPE_FIELDS_MAX || !isValid) {
    throw usageError(`scope: at most ${SCOPE_FIELDS_MAX} fields, names as lanes have them, values of 400 characters`);
  }
  return Object.fromEntries(entries);
}

export function validateIdle(idle_ms: number): number {
  if (Number.isInteger(idle_ms) && idle_ms >= 1 && idle_ms <= IDLE_MS_MAX) return idle_ms;
  throw usageError(`idleMs: a whole number of milliseconds, at most ${IDLE_MS_MAX}`);
}

export const validateRole = (role: string): string => validateField('role', Identifier, role);

export function validateActor(actor: string): string {
  if (actor.length < 3 || actor.length > 120 || !actor.isWellFormed()) {
    throw usageError('actor: 3 to 120 characters');
  }
  return actor;
}

/**
 * C87: the person that an actor is compared as.
 * @throws UsageError for a name that cannot be compared
 */
export function asPerson(actor: string): Person {
  const person = personOf(actor);
  if (typeof person !== 'string') return person;
  throw usageError(`actor: the name ${NAME_PROBLEMS[person]}`);
}

/**
 * The person behind an actor, with the names of the policy that are that person or look like it: the kernel compares
 * no names.
 * @throws UsageError for a name that cannot be compared
 */
export function asNamedPerson(
  { actor = AGENT_DEFAULTS.actor, person: name = actor }: Pick<AgentOptions, 'actor' | 'person'>,
  { conditions }: Pick<Policy, 'conditions'>,
): Person {
  const person = asPerson(name);
  const names = conditions?.names ?? [];
  if (names.length === 0) return person;
  const own = asPerson(actor);
  const likeness = (policyName: string): Likeness => {
    const other = personOf(policyName);
    if (typeof other === 'string') return 'unknown';
    const found = compareNames(person, other);
    // The name of the actor is another name of the person.
    return found === 'other' && compareNames(own, other) !== 'other' ? 'alike' : found;
  };
  const known = names.map((policyName) => [policyName, likeness(policyName)] as const);
  const same_as = known.filter(([, found]) => found === 'same').map(([policyName]) => policyName);
  const alike_to = known.filter(([, found]) => found === 'alike' || found === 'unknown').map(([each]) => each);
  return { ...person, ...listed('same_as', same_as), ...listed('alike_to', alike_to) };
}

/** @throws UsageError for more names than an input records */
function listed(member: 'same_as' | 'alike_to', names: readonly string[]): Partial<Person> {
  if (names.length > POLICY_NAMES_MAX) throw usageError('actor: conditions name it in too many spellings');
  return names.length === 0 ? {} : { [member]: [...names] };
}

/** @throws UsageError that names the rule which the value breaks */
export function validateField(name: string, schema: TSchema, value: string): string {
  if (isConforming(schema, value)) return value;
  // Callers without types may pass any value.
  if (typeof (value as unknown) !== 'string') throw usageError(`${name}: it is not a text`);
  throw usageError(`${name}: ${quoteForMessage(value)} ${findTextProblem(schema, value) ?? 'is not an id'}`);
}
