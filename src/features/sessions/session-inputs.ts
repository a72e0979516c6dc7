// Makes inputs and commands from the calls of clients. Text of agents is validated before anything is recorded.

import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { isJsonObject, type JsonObject, canonicalJson, parseOwnJson } from '../../core/contract/json.js';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { GATE_POLICIES, POSTURE_SETTINGS, POSTURES, SESSION_LIMITS, SessionSettings } from './contract/session.js';
import type { SessionSpec } from './contract/session-spec.js';
import { Identifier } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { usageError, idempotencyConflict } from '../../core/errors.js';
import { definitionsOf } from '../../kernel/pinned-policy.js';
import { toSessionRole } from './rules/apply-command.js';
import { SESSIONS } from './tree/session-tree.js';
import type { Ids } from '../../engine/ports/ids.js';
import {
  validateActor,
  validateField,
  asNamedPerson,
  AGENT_DEFAULTS,
  narrowExposure,
  createOpenInput,
  type InputOf,
  createNote,
  type Note,
} from '../../runtime/agents/caller-input.js';
import { chooseCase } from '../../runtime/agents/choose-case.js';
import type { PinnedPolicy } from '../../runtime/policy-cache.js';
import type { SessionCaller, StartSessionOptions } from './sessions.js';
import { type OpenSessionInput, SessionCommand } from './contract/session-records.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { SessionState } from './rules/session-state.js';

const REPORT_BYTES_MAX = 131_072;
const REPORT_DEPTH_MAX = 8;
const PROOF_CHARS_MAX = 400;

/** A report in the form that may be recorded: a hash stands for its step proof (D10). */
export interface ReceivedReport {
  readonly artifact: Artifact;
  readonly proof_sha256: string | null;
}

/** @returns null for an invalid report: not a JSON object, too large or too deep */
export function receiveReport(value: unknown, case_id: string | null): ReceivedReport | null {
  if (!isJsonObject(value) || !isShallow(value, REPORT_DEPTH_MAX)) return null;
  const { step_proof, ...rest } = value;
  const bytes = bytesOf(rest);
  if (bytes === null || bytes.byteLength > REPORT_BYTES_MAX) return null;
  const proof = typeof step_proof === 'string' && step_proof.length <= PROOF_CHARS_MAX ? step_proof : null;
  return {
    artifact: { kind: 'session_report', case_id, bytes },
    proof_sha256: proof === null || proof === '' ? null : sha256(proof),
  };
}

/** Members that are null are omitted. */
function bytesOf(report: JsonObject): Uint8Array | null {
  try {
    const members = Object.entries(report).filter(([, member]) => member !== null);
    return Buffer.from(canonicalJson(Object.fromEntries(members)));
  } catch {
    return null;
  }
}

/**
 * Whether the value nests no deeper than `max`. Members are never spread into call arguments, so width is no problem.
 */
function isShallow(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return max > 0 && Object.values(value).every((member) => isShallow(member, max - 1));
}

/** The caller as the ledger records it. @throws UsageError for a name that no actor can have */
export function toRecordedCaller({ actor, role }: SessionCaller) {
  const known = toSessionRole(role);
  return {
    actor: { actor_type: known === 'autonomy_runner' ? 'agent' : 'human', actor_id: validateActor(actor) },
    role: known,
  } as const;
}

export interface SpecMaterial {
  readonly spec: SessionSpec;
  readonly file: string | null;
}

/** The first input of a session's tree. @throws UsageError for options that do not conform to the contract */
export function createStartSessionInput(
  session_id: string,
  options: StartSessionOptions,
  { spec, file }: SpecMaterial,
  pinned: PinnedPolicy,
  ids: Ids,
): { readonly input: InputOf<'open_session'>; readonly materials: readonly Artifact[] } {
  const { lane = AGENT_DEFAULTS.lane } = options;
  const case_id = chooseCase(session_id, options.case, [lane, ...lanesOf(spec)], pinned.policy);
  const own = withSessionMachine(pinned);
  const { open, notes } = createOpenInput(session_id, { ...options, case_id }, own, ids);
  const artifact: Artifact = { kind: 'session_spec', case_id: open.case_id, bytes: Buffer.from(canonicalJson(spec)) };
  const { exposure: ceiling } = pinned.policy;
  const exposure = options.exposure ?? ceiling;
  if (!EXPOSURES.includes(exposure)) throw usageError(`exposure: ${EXPOSURES.join(' or ')}`);
  const input: InputOf<'open_session'> = {
    ...open,
    kind: 'open_session',
    feature: 'sessions',
    spec: artifactRef(artifact),
    spec_file: file,
    idempotency_key: validateIdempotencyKey(options.idempotencyKey),
    settings: resolveSessionSettings(options),
    agent: {
      actor: { actor_type: 'agent', actor_id: validateActor(options.actor ?? AGENT_DEFAULTS.actor) },
      person: asNamedPerson(options, pinned.policy),
      role_id: validateField('agentRole', Identifier, options.agentRole ?? AGENT_DEFAULTS.role),
      lane_id: validateField('lane', Identifier, lane),
      exposure: narrowExposure(ceiling, exposure),
    },
    by: toRecordedCaller(options.by),
  };
  return { input, materials: [...own.materials, artifact, ...notes] };
}

/** The pinned policy with the definitions of a session's tree: those of a run tree, and the machine of sessions. */
function withSessionMachine(pinned: PinnedPolicy): PinnedPolicy {
  const known = withMachine.get(pinned);
  if (known !== undefined) return known;
  const bytes = Buffer.from(definitionsOf(pinned.policy, SESSIONS.root));
  const machines: Artifact = { kind: 'machines', case_id: null, bytes };
  const materials = pinned.materials.map((artifact) => (artifact.kind === 'machines' ? machines : artifact));
  const made = { ...pinned, machines: artifactRef(machines), materials };
  withMachine.set(pinned, made);
  return made;
}
const withMachine = new WeakMap<PinnedPolicy, PinnedPolicy>();

/** The lanes of the tasks that name one. */
const lanesOf = ({ phases }: SessionSpec): readonly string[] =>
  phases.flatMap(({ tasks }) => tasks.flatMap(({ lane }) => lane ?? []));

const IDEMPOTENCY_KEY_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

function validateIdempotencyKey(key: string | undefined): string | null {
  if (key === undefined) return null;
  if (IDEMPOTENCY_KEY_PATTERN.test(key)) return key;
  throw usageError('idempotencyKey: up to 128 of A-Z, a-z, 0-9, _ and -');
}

/** The settings of the posture, with those of the caller. @throws UsageError for what the posture forbids */
export function resolveSessionSettings(options: StartSessionOptions): SessionSettings {
  const posture = options.posture ?? 'supervised';
  if (!POSTURES.includes(posture)) throw usageError(`posture: ${POSTURES.join(', ')}`);
  const base = POSTURE_SETTINGS[posture];
  const gate_policy = options.gatePolicy ?? base.gate_policy;
  if (!GATE_POLICIES.includes(gate_policy)) throw usageError(`gatePolicy: ${GATE_POLICIES.join(', ')}`);
  const settings: SessionSettings = {
    posture,
    gate_policy,
    enforce_gates: options.enforceGates ?? base.enforce_gates,
    allow_gate_waiver: options.allowGateWaiver ?? base.allow_gate_waiver,
    allow_skipped: options.allowSkipped ?? base.allow_skipped,
    stop_on_phase_completion: options.stopOnPhaseCompletion ?? base.stop_on_phase_completion,
    auto_retry_fidelity_gate: options.autoRetryFidelityGate ?? base.auto_retry_fidelity_gate,
    limits: { ...SESSION_LIMITS, ...base.limits, ...options.limits },
  };
  if (!isConforming(SessionSettings, settings))
    throw usageError('limits: whole numbers within the ranges of the documentation');
  const { heartbeat_grace_minutes, heartbeat_stale_minutes } = settings.limits;
  if (heartbeat_grace_minutes >= heartbeat_stale_minutes) {
    throw usageError('limits: heartbeat_grace_minutes is less than heartbeat_stale_minutes');
  }
  const isLoosened = gate_policy !== 'strict' || !settings.enforce_gates || settings.allow_gate_waiver;
  if (posture === 'unattended' && isLoosened) {
    throw usageError('posture unattended: gates are strict and enforced, and cannot be waived');
  }
  return settings;
}

/**
 * What an idempotency key of a start is not bound to: what each request and each process has of its own, and the
 * caller. Every other member is bound.
 */
const UNBOUND_MEMBERS: ReadonlySet<string> = new Set<keyof OpenSessionInput>([
  ...(['input_id', 'time', 'kind', 'run_id', 'by'] as const),
  // Policy and program may have changed since. The scope has the hashes of its notes.
  ...(['policies', 'machines', 'notes'] as const),
]);

/** The names that policy has for the person are not compared: policy may have changed since. */
function boundText(start: Readonly<Record<string, unknown>>, unbound: ReadonlySet<string>): string {
  const agent = start['agent'];
  const { person, ...named } = (agent ?? {}) as { readonly person?: { readonly canonical_id?: string } };
  const members = Object.entries(start).filter(([name]) => !unbound.has(name));
  return canonicalJson([{ ...Object.fromEntries(members), agent: named }, person?.canonical_id ?? null]);
}

/**
 * Returns if the session was started with the same members. Else the tree of the session
 * refuses the start, and records that.
 * @throws RunError IDEMPOTENCY_CONFLICT
 */
export async function requireSameStart(
  { engine, store }: { readonly engine: Pick<TreeEngine, 'submit'>; readonly store: Pick<LedgerStore, 'tree'> },
  start: Extract<NewInput, { readonly kind: 'open_session' }>,
  materials: readonly Artifact[],
  /** Absent: the correlation id of the start was drawn. */
  correlation: string | undefined,
): Promise<void> {
  const unbound = correlation === undefined ? new Set([...UNBOUND_MEMBERS, 'correlation_id']) : UNBOUND_MEMBERS;
  for await (const { text } of store.tree(start.run_id)) {
    const { body } = parseOwnJson(text) as { readonly body: Readonly<Record<string, unknown>> };
    // An earlier version may have recorded fewer members.
    const given = Object.fromEntries(Object.entries(start).filter(([name]) => name in body));
    if (boundText(given, unbound) === boundText(body, unbound)) return;
    break;
  }
  await engine.submit(start.run_id, { input: start, materials, rememberInputId: false });
  throw idempotencyConflict();
}

/** Limit of the text that may accompany a pause, an end or a waiver, in characters. */
const DETAIL_CHARS_MAX = 400;

/** The text that a person adds to a command, as a note. @returns null for malformed or too long text */
export function createDetailNote(text: string | null | undefined, case_id: string | null): Note | null {
  const isText = text == null || (text.length <= DETAIL_CHARS_MAX && text.isWellFormed());
  return isText ? createNote(text, case_id) : null;
}

/** The platform's own detail of a session that another one replaces. */
export const FORCE_REPLACED = 'force_replaced';
export const platformDetail = (detail: string | undefined): string | null =>
  detail === FORCE_REPLACED ? detail : null;

export function isRecordable(command: SessionCommand): boolean {
  try {
    return isConforming(SessionCommand, command) && canonicalJson(command).length > 0;
  } catch {
    return false;
  }
}

/** @returns undefined for an invalid percentage */
export const validatePercentage = (value: number | undefined): number | null | undefined => {
  if (value === undefined) return null;
  return typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined;
};

// Ids in a command that belong to the session are recorded as they are, all others as hashes (C90). No step, attempt or
// phase has a hash as its id, so the session rejects the hash as it would reject the id.

export function hashForeignIds(command: SessionCommand, session: SessionState): SessionCommand {
  const recordId = (id: string): string =>
    id.startsWith(`${session.session_id}-`) && PLATFORM_ID.test(id) ? id : hashId(id);
  const recordPhaseId = (id: string): string =>
    session.spec.phases.some((known) => known.id === id) ? id : hashId(id);
  switch (command.name) {
    case 'verify':
      return { ...command, step_id: recordId(command.step_id) };
    case 'review':
      return { ...command, step_id: recordId(command.step_id), phase_id: recordPhaseId(command.phase_id) };
    case 'waive':
      return { ...command, phase_id: recordPhaseId(command.phase_id) };
    case 'resume': {
      const { acknowledge } = command;
      if (acknowledge === null) return command;
      return { ...command, acknowledge: { ...acknowledge, gate_attempt_id: recordId(acknowledge.gate_attempt_id) } };
    }
    default:
      return command;
  }
}

/** The end of an id that the platform made: a word and an ordinal. */
const PLATFORM_ID = /-[a-z]{1,8}\d{1,9}$/;
const hashId = (id: string): string => `sha256-${sha256(id)}`;
