// Applies the turn of a session: emits its events and its answer, and gives orders to its orchestrator runs.

import type { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import { canonicalJson } from '../../../core/contract/json.js';
import type { OverlayFact } from '../../../core/contract/policy/overlay.js';
import { activationContext, type RunContext } from '../../../core/contract/run/run-context.js';
import { authorizeOrchestrator, EMPTY_LABEL } from '../../../core/policy/authorize-run.js';
import { denyActivation } from '../rules/resume.js';
import type { SessionState } from '../rules/session-state.js';
import type { CommandContext, RunOrder, Turn } from '../rules/turn-builder.js';
import { withRefs } from '../../../../machines/run.js';
import type { Emission } from '../../../../machines/emission.js';
import type { HighRiskAction } from '../../../../machines/high-risk-run.js';
import { CHECK_TOOLS } from '../rules/checks.js';
import type { OrchestratorEvent, OrchestratorInput } from '../../../../machines/orchestrator.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { NextStep } from '../contract/session-answer.js';
import type { SessionSpec } from '../contract/session-spec.js';

/** The actor of everything that the platform does on its own. */
export const PLATFORM = { actor: { actor_type: 'system', actor_id: 'turnpike' }, role: 'maintainer' } as const;
/** The role and lane of verification and review runs. */
const CHECK_RUN_IDENTITY = { role_id: 'SESSION_RUNNER', lane_id: 'SESSION_CHECKS' } as const;

/** The part of XState's `enqueue` that a session needs. */
export interface SessionEnqueuer {
  emit(emission: Emission): void;
  assign(update: { readonly session: SessionState; readonly live: readonly string[] }): void;
  spawnChild(src: 'orchestrator', options: { readonly id: string; readonly input: OrchestratorInput }): void;
  sendTo(id: string, event: OrchestratorEvent): void;
}

/** The caller on whose behalf a turn is applied. */
export interface TurnOrigin {
  /** The command that gets the answer; null if no command waits for one. */
  readonly input_id: string | null;
  readonly time: string;
  readonly overlay: OverlayFact | null;
  readonly requester: Pick<CommandContext, 'actor' | 'role'>;
}

interface TurnMemory {
  readonly base: RunContext;
  readonly inputs?: readonly ArtifactRef[];
  readonly session: SessionState;
  readonly live: readonly string[];
}

export function applyTurn(
  enqueuer: SessionEnqueuer,
  { base, live, inputs = [] }: TurnMemory,
  requestedTurn: Turn,
  origin: TurnOrigin,
): void {
  const opening = requestedTurn.orders.find((order) => order.kind === 'open_activation');
  const run = opening === undefined ? null : activationContext(base, opening.run_id);
  const verdict = run === null ? null : authorizeOrchestrator(run);
  const turn = verdict?.decision === 'deny' ? denyTurn(requestedTurn, origin, verdict.rule_id) : requestedTurn;
  enqueuer.assign({ session: turn.state, live: run === null ? live : [...live, run.run_id] });
  // Do this first: in the first macrostep of a machine, XState starts spawned actors before it emits anything.
  const isRecorded = inputs.length > 0;
  const activationInputs = isRecorded && run !== null ? withRefs(inputs, [specRef(turn.state.spec, base.case_id)]) : [];
  if (run !== null)
    enqueuer.spawnChild('orchestrator', {
      id: run.run_id,
      input: { run, is_activation: true, inputs: activationInputs },
    });
  for (const body of turn.events) enqueuer.emit({ type: 'feature_entry', entry_type: 'session_event', body });
  if (run !== null && verdict !== null) {
    enqueuer.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay: null, digest: null });
  }
  const given = (): readonly ArtifactRef[] => (isRecorded ? packetRefs(turn.state, base) : []);
  for (const order of turn.orders) sendOrder(enqueuer, order, turn.state, { ...origin, given });
  if (origin.input_id === null || turn.answer === null) return;
  const response = canonicalJson(turn.answer);
  enqueuer.emit({ type: 'reply', reply: { run_id: turn.state.session_id, input_id: origin.input_id, response } });
}

const denyTurn = (turn: Turn, { requester }: TurnOrigin, rule_id: string): Turn => {
  const failed = denyActivation(turn, requester, rule_id);
  return { ...failed, events: [...turn.events, ...failed.events] };
};

/** The origin of an order, and the initial material of an agent that it starts. */
type OrderOrigin = TurnOrigin & { readonly given: () => readonly ArtifactRef[] };

const withTool = (act: HighRiskAction): HighRiskAction => {
  const tool = CHECK_TOOLS[act.action];
  return tool === undefined ? act : { ...act, tool };
};

const packetRefs = ({ outstanding, spec }: SessionState, { case_id }: RunContext): readonly ArtifactRef[] =>
  outstanding === null ? [] : [packetRef(outstanding.step, spec, case_id)];

function sendOrder(
  enqueuer: SessionEnqueuer,
  order: RunOrder,
  { agent }: SessionState,
  { overlay, time, given }: OrderOrigin,
): void {
  switch (order.kind) {
    case 'open_activation':
      return;
    case 'start_agent':
      enqueuer.sendTo(order.activation, {
        type: 'START_AGENT',
        actor: agent.actor,
        person: agent.person,
        role_id: agent.role_id,
        lane_id: order.lane_id,
        exposure: agent.exposure,
        link: 'remote',
        // The session itself judges how long the agent may be silent.
        idle_ms: null,
        budget: null,
        given: given(),
        overlay,
        time,
      });
      return;
    case 'end_agent':
      enqueuer.sendTo(order.activation, { type: 'END_CHILD', run_id: order.run_id });
      return;
    case 'start_check':
      enqueuer.sendTo(order.activation, {
        type: 'START_RUN',
        run_kind: 'tool_gateway',
        actor: PLATFORM.actor,
        ...CHECK_RUN_IDENTITY,
        act: withTool(order.act),
        request: null,
        inputs: [],
        facts: { artifact_flags: [], label: EMPTY_LABEL },
        overlay,
        time,
      });
      return;
    case 'close_activation':
      enqueuer.sendTo(order.activation, { type: 'CLOSE', reason: order.reason });
  }
}

const specs = new WeakMap<SessionSpec, ArtifactRef>();

/**
 * A reference to the session's current spec, by the hash of its canonical JSON. A spec may be large, so it is hashed
 * once.
 */
function specRef(spec: SessionSpec, case_id: string | null): ArtifactRef {
  const ref = specs.get(spec) ?? refOf('session_spec', canonicalJson(spec), case_id);
  specs.set(spec, ref);
  return ref;
}

/**
 * A reference to the step for which an agent run was started, by the hash of its canonical JSON without the proof. The
 * step is derived from the spec, so the packet itself is not stored.
 */
const packetRef = (step: NextStep, spec: SessionSpec, case_id: string | null): ArtifactRef => ({
  ...refOf('step_packet', canonicalJson(step), case_id),
  lineage: { derived_from: [specRef(spec, case_id).artifact_id], transformation: 'step of the session' },
});

function refOf(artifact_kind: string, text: string, case_id: string | null): ArtifactRef {
  const hash_sha256 = sha256(text);
  const ref = { artifact_id: `sha256:${hash_sha256}`, artifact_kind, hash_sha256, byte_size: Buffer.byteLength(text) };
  return case_id === null ? { ...ref, scope: 'system' } : { ...ref, scope: 'case', case_id };
}
