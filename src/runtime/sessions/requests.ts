// What callers say, made into inputs: agents' words are held to their form before anything is recorded.

import { artifactRef, type Artifact } from '../../contract/artifact-ref.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import { sha256 } from '../../contract/hash.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { EXPOSURES } from '../../contract/response.js';
import { GATE_POLICIES, POSTURE_SETTINGS, POSTURES, SESSION_LIMITS, SessionSettings } from '../../contract/session.js';
import type { SessionSpec } from '../../contract/session-spec.js';
import { Identifier } from '../../contract/shapes.js';
import { conforms } from '../../contract/validators.js';
import { UsageError } from '../../errors.js';
import { roleOf } from '../../session/lifecycle.js';
import type { Ids } from '../../ports/ids.js';
import { actorOf, checked, comparedAs, DEFAULTS, narrower, openRequest, type Of } from '../open-request.js';
import type { PinnedPolicy } from '../pinned-policy.js';
import type { SessionCaller, StartSessionOptions } from './sessions.js';

const REPORT_BYTES_MAX = 131_072;
const REPORT_DEPTH_MAX = 8;
const PROOF_CHARS_MAX = 400;

/** A report as it may be recorded: what it proves is kept as a hash (D10). */
export interface ReceivedReport {
  readonly artifact: Artifact;
  readonly proof_sha256: string | null;
}

/** Null for what is no report at all: no JSON object, too large, too deep. */
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

/** Members that are null are as if they were not there. */
function bytesOf(report: JsonObject): Uint8Array | null {
  try {
    const given = Object.entries(report).filter(([, member]) => member !== null);
    return Buffer.from(canonicalJson(Object.fromEntries(given)));
  } catch {
    return null;
  }
}

/** Whether it nests no deeper than this. However wide it is: no call has its members as arguments. */
function isShallow(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return max > 0 && Object.values(value).every((member) => isShallow(member, max - 1));
}

/** Who speaks, as the ledger has it. @throws UsageError for a name that no actor can have */
export function speaker({ actor, role }: SessionCaller) {
  const known = roleOf(role);
  return {
    actor: { actor_type: known === 'autonomy_runner' ? 'agent' : 'human', actor_id: actorOf(actor) },
    role: known,
  } as const;
}

export interface SpecMaterial {
  readonly spec: SessionSpec;
  readonly file: string | null;
}

/** The first input of a session's tree. @throws UsageError for options that the contract cannot hold */
export function startRequest(
  session_id: string,
  options: StartSessionOptions,
  { spec, file }: SpecMaterial,
  pinned: PinnedPolicy,
  ids: Ids,
): { readonly input: Of<'open_session'>; readonly materials: readonly Artifact[] } {
  const { open, notes } = openRequest(session_id, options, pinned, ids);
  const artifact: Artifact = { kind: 'session_spec', case_id: open.case_id, bytes: Buffer.from(canonicalJson(spec)) };
  const { exposure: ceiling } = pinned.policy;
  const exposure = options.exposure ?? ceiling;
  if (!EXPOSURES.includes(exposure)) throw usage(`exposure: ${EXPOSURES.join(' or ')}`);
  const input: Of<'open_session'> = {
    ...open,
    kind: 'open_session',
    spec: artifactRef(artifact),
    spec_file: file,
    idempotency_key: keyOf(options.idempotencyKey),
    settings: settingsOf(options),
    agent: {
      actor: { actor_type: 'agent', actor_id: actorOf(options.actor ?? DEFAULTS.actor) },
      person: comparedAs(options.actor ?? DEFAULTS.actor),
      role_id: checked('agentRole', Identifier, options.agentRole ?? DEFAULTS.role),
      lane_id: checked('lane', Identifier, options.lane ?? DEFAULTS.lane),
      exposure: narrower(ceiling, exposure),
    },
    by: speaker(options.by),
  };
  return { input, materials: [...pinned.materials, artifact, ...notes] };
}

const KEY = /^[A-Za-z0-9_-]{1,128}$/;

function keyOf(key: string | undefined): string | null {
  if (key === undefined) return null;
  if (KEY.test(key)) return key;
  throw usage('idempotencyKey: up to 128 of A-Z, a-z, 0-9, _ and -');
}

/** The posture's settings, and what the caller sets beside them. @throws UsageError for what a posture forbids */
export function settingsOf(options: StartSessionOptions): SessionSettings {
  const posture = options.posture ?? 'supervised';
  if (!POSTURES.includes(posture)) throw usage(`posture: ${POSTURES.join(', ')}`);
  const base = POSTURE_SETTINGS[posture];
  const gate_policy = options.gatePolicy ?? base.gate_policy;
  if (!GATE_POLICIES.includes(gate_policy)) throw usage(`gatePolicy: ${GATE_POLICIES.join(', ')}`);
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
  if (!conforms(SessionSettings, settings)) throw usage('limits: whole numbers within the ranges of the documentation');
  const { heartbeat_grace_minutes, heartbeat_stale_minutes } = settings.limits;
  if (heartbeat_grace_minutes >= heartbeat_stale_minutes) {
    throw usage('limits: heartbeat_grace_minutes is less than heartbeat_stale_minutes');
  }
  const loosened = gate_policy !== 'strict' || !settings.enforce_gates || settings.allow_gate_waiver;
  if (posture === 'unattended' && loosened) {
    throw usage('posture unattended: gates are strict and enforced, and nobody waives them');
  }
  return settings;
}

const usage = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
