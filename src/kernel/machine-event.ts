// Maps the closed vocabulary of inputs to machine events. No other module sends an event from outside. A
// proposal over the limit of its policy becomes one with a prefix of its payload (C80).

import type { AgentEvent, ProposeEvent } from '../../machines/agent.js';
import type { StartRunEvent } from '../../machines/high-risk-run.js';
import type { ReportEvent } from '../../machines/caller-runs/caller-run.js';
import type { MediatedEvent, ResultEvent } from '../../machines/mediated.js';
import type { OrchestratorEvent } from '../../machines/orchestrator.js';
import type { StepEvent } from '../../machines/step.js';
import type { ApprovalBallot } from '../core/contract/run/approval.js';
import type { GatheredFacts, SandboxFacts } from '../core/contract/run/effect.js';
import type {
  FactsInput,
  ProposalInput,
  ReportInput,
  ResultInput,
  StartRunInput,
  VoteInput,
} from '../core/contract/run/entry.js';
import type { Artifact } from '../core/contract/artifact-ref.js';
import { toCancelReason } from '../core/contract/free-text.js';
import { isJsonObject } from '../core/contract/json.js';
import { attachText } from '../core/step/explanation/attached-explanation.js';
import { InvariantError } from '../core/errors.js';
import type { Policy } from '../core/policy/policy.js';
import type { TreeInput } from './decision.js';
import { isPrefixValid, createPayloadPrefix } from '../core/contract/run/input.js';

/** The machine event for an input. `open` has none: it starts the tree. */
export function toMachineEvent(
  { recorded, materials }: TreeInput,
  policy: Policy | null,
): AgentEvent | OrchestratorEvent | StepEvent | MediatedEvent {
  switch (recorded.kind) {
    case 'open':
      throw new InvariantError('`open` starts a tree, so it has no machine event');
    case 'start_agent':
      return { ...recorded, type: 'START_AGENT' };
    case 'proposal':
      return proposeEvent(recorded, materials, policy);
    case 'facts':
      return { type: 'FACTS', facts: withOtherFacts(factsWithReservations(recorded), recorded) };
    case 'result':
      return resultEvent(recorded, materials);
    case 'report':
      return reportEvent(recorded, materials);
    case 'end':
      return { type: 'END' };
    case 'cancel':
      return { type: 'CANCEL', reason: toCancelReason(recorded.reason) };
    case 'interrupt':
      return { type: 'INTERRUPT' };
    case 'wake':
      return { type: 'WAKE', time: recorded.time, overlay: recorded.overlay };
    case 'start_run':
      return startRunEvent(recorded, materials);
    case 'vote':
      return { type: 'VOTE', ballot: ballotOf(recorded), overlay: recorded.overlay };
    case 'resolve':
    case 'access':
    case 'restore':
    case 'rotate_key':
      throw new InvariantError(`\`${recorded.kind}\` changes no run, so it has no machine event`);
    default:
      throw new InvariantError('an input of a feature has no machine event: its feature decides it');
  }
}

function proposeEvent(recorded: ProposalInput, materials: readonly Artifact[], policy: Policy | null): ProposeEvent {
  const [payload] = materials;
  if (payload === undefined) throw new InvariantError('a proposal must bring its payload');
  if (recorded.prefix !== undefined && !canHavePrefix(recorded, policy))
    throw new InvariantError('a payload within the limit must be complete');
  const { input_id, time, seen, prompt = null } = recorded;
  // The response follows the payload and, if present, the prompt.
  const response = materials[prompt === null ? 1 : 2];
  return {
    type: 'PROPOSE',
    input_id,
    time,
    payload: recorded.payload,
    raw: recorded.prefix === undefined ? payload.bytes : null,
    seen,
    recorded_response: response === undefined ? null : decoder.decode(response.bytes),
    tokens: recorded.tokens,
    prompt,
    overlay: recorded.overlay,
  };
}

/** C82: a quota counts reserved bytes and files as used. */
function factsWithReservations({ facts, reserved }: FactsInput): SandboxFacts {
  if (reserved === undefined) return facts;
  const { paths, usage } = facts;
  if (usage === null) return facts;
  return { paths, usage: { bytes: usage.bytes + reserved.bytes, files: usage.files + reserved.files } };
}

/** The facts with what was read of counters and decision points. */
function withOtherFacts(facts: SandboxFacts, { counters, decisions }: FactsInput): GatheredFacts {
  if (counters === undefined && decisions === undefined) return facts;
  return { ...facts, ...(counters && { counters }), ...(decisions && { decisions }) };
}

function resultEvent(recorded: ResultInput, materials: readonly Artifact[]): ResultEvent {
  const { status, cause, explanation, time } = recorded;
  const material = recorded.result === null ? undefined : materials[0];
  const words = explanation === undefined ? undefined : materials.at(-1);
  if (explanation !== undefined && words !== undefined && status === 'failed') {
    const explanation_ref = attachText(explanation, decoder.decode(words.bytes));
    return { type: 'RESULT', status, cause, result: null, result_ref: recorded.result, explanation_ref, time };
  }
  if (material === undefined) {
    if (status === 'done') throw new InvariantError('a result that is done must bring its content');
    return { type: 'RESULT', status, cause, result: null, result_ref: null, time };
  }
  // The engine's own text, hashed in the ledger; no agent wrote it.
  const result: unknown = JSON.parse(decoder.decode(material.bytes));
  if (!isJsonObject(result)) throw new InvariantError('a result must be a JSON object');
  if (status !== 'done') return { type: 'RESULT', status, cause, result: null, result_ref: recorded.result, time };
  return { type: 'RESULT', status, cause, result, result_ref: recorded.result, time };
}

function reportEvent(recorded: ReportInput, [material]: readonly Artifact[]): ReportEvent {
  const { status, result: result_ref, actor, match, time } = recorded;
  const result: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  if (result !== null && !isJsonObject(result)) throw new InvariantError('a reported result must be a JSON object');
  return { type: 'REPORT', status, result, result_ref, reported: { actor, match }, time };
}

function startRunEvent(recorded: StartRunInput, [material]: readonly Artifact[]): StartRunEvent {
  const { run_kind, actor, person, role_id, lane_id, request, inputs, facts, overlay, time } = recorded;
  const parsed: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  const { action, args } = isJsonObject(parsed) ? parsed : {};
  if (typeof action !== 'string' || !isJsonObject(args)) throw new InvariantError('a run is started without a request');
  return {
    type: 'START_RUN',
    run_kind,
    actor,
    person,
    role_id,
    lane_id,
    act: { action, args },
    request,
    inputs,
    facts,
    overlay,
    time,
  };
}

/** The timestamp is the recorded one; the approver's own claim does not count. */
const ballotOf = ({ digests, decision, approver, run_id, time }: VoteInput): ApprovalBallot => ({
  digests,
  decision,
  approver,
  at: time,
  for_run: run_id,
});

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

type PayloadPolicy = Pick<Policy, 'limits'> | null;

/**
 * C80. @returns the prefix that a tree under `policy` stores in place of this payload; null if it stores the whole
 *      payload
 */
export function storedPrefix(payload: Artifact | undefined, policy: PayloadPolicy): Artifact | null {
  if (policy === null || payload === undefined) return null;
  return payload.bytes.byteLength > policy.limits.payload_bytes_max ? createPayloadPrefix(payload) : null;
}

/** Whether a proposal may carry a prefix in place of its payload. */
const canHavePrefix = (proposal: ProposalInput, policy: PayloadPolicy): boolean =>
  policy !== null && isPrefixValid(proposal, policy.limits.payload_bytes_max);
