// AUTHORIZE, put together: the lane's verdict, then the facts, then the verdict on paths and quota. The run that
// carries the verdict is the mediated one, so everything is judged in that run's context (C51).

import { findAction, type ActionDefinition } from '../contract/actions.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import { canonicalJson } from '../contract/canonical-json.js';
import type { Effect, GatherRequest, PathFact, SandboxFacts } from '../contract/effect.js';
import type { ExecutionCause, Fault } from '../contract/fault.js';
import { sha256 } from '../contract/hash.js';
import type { JsonObject } from '../contract/json.js';
import { childContext, contextInLane, type RunContext } from '../contract/run-context.js';
import { InvariantError } from '../errors.js';
import { authorizePrivileged, laneContext, type PrivilegedRequest } from '../policy/lane-decision.js';
import type { Policy } from '../policy/policy.js';
import type { Verdict } from '../policy/verdict.js';
import { authorizePaths, gatherRequestFor } from './authorize.js';
import { effectLimits } from './execute.js';

/** How far AUTHORIZE has come: no verdict while it waits for facts. */
export interface Authorization {
  readonly verdict: Verdict | null;
  /** The canonical arguments, once allowed. */
  readonly args: JsonObject | null;
  /** What stood at the paths when it was allowed (D8). */
  readonly before: readonly PathFact[];
}

/** Nothing is decided yet. */
export const WAITING: Authorization = { verdict: null, args: null, before: [] };

/** What of a step AUTHORIZE looks at; reasoning is not part of it (S0-67). */
export interface Authorizable {
  readonly agent: RunContext;
  readonly action: string | null;
  readonly args: JsonObject | null;
  readonly mediated_run_id: string;
  readonly payload: ArtifactRef;
  readonly authorization: Authorization;
}

const contexts = new WeakMap<RunContext, { readonly run: RunContext; readonly lane_id: string | null }>();

/**
 * The context of the run that will carry this action: in the action's own lane where policy names one (D12).
 * A step asks for it several times, and it is remembered until the agent's next one.
 */
export function mediatedContext(step: Authorizable, policy: Policy): RunContext {
  const lane_id = policy.actions.get(step.action ?? '')?.lane ?? step.agent.lane_id;
  const known = contexts.get(step.agent);
  if (known?.run.run_id === step.mediated_run_id && known.lane_id === lane_id) return known.run;
  const child = childContext(step.agent, step.mediated_run_id, 'tool_gateway');
  const lane = lane_id === null ? undefined : policy.lanes.get(lane_id);
  const run = lane === undefined ? contextInLane(child, lane_id, child.case_id) : laneContext(child, lane);
  contexts.set(step.agent, { run, lane_id });
  return run;
}

/** The first half: role, lane, tool, scope, prohibitions (S4-31 to S4-35). No verdict yet when facts are needed. */
export function judgeLane(step: Authorizable, policy: Policy): Authorization {
  const definition = definitionOf(step);
  if (definition.tool === null) return WAITING;
  const run = mediatedContext(step, policy);
  const verdict = authorizePrivileged(run, privilegedRequest(definition, run), policy);
  if (verdict.decision === 'deny') return { verdict, args: null, before: [] };
  if (run.case_id === null) return { verdict: NO_CASE, args: null, before: [] };
  // What is denied as it is written is denied without looking.
  if (gatherRequestFor(definition, step.args ?? {}, run.case_id, policy) === null) {
    return decideByFacts(step, null, policy);
  }
  return WAITING;
}

/** What the engine shall find out. @throws InvariantError when judgeLane has already decided */
export function gatherFor(step: Authorizable, policy: Policy): GatherRequest {
  const { case_id } = mediatedContext(step, policy);
  const request = case_id === null ? null : gatherRequestFor(definitionOf(step), step.args ?? {}, case_id, policy);
  if (request === null) throw new InvariantError('there is nothing to gather for this step');
  return request;
}

/** The second half: canonical paths, extensions, what stands there, quota. Without facts it denies. */
export function decideByFacts(step: Authorizable, facts: SandboxFacts | null, policy: Policy): Authorization {
  const checked = authorizePaths({ definition: definitionOf(step), args: step.args ?? {}, facts, policy });
  if (!checked.ok) {
    const { rule_id, cause } = checked.fault;
    return { verdict: { decision: 'deny', rule_id, cause: asPolicyCause(cause) }, args: null, before: [] };
  }
  return {
    verdict: { decision: 'allow', rule_id: 'lane.granted', cause: null },
    args: checked.value,
    before: facts?.paths ?? [],
  };
}

/** The act as the mediated run is asked for it: complete, and nothing for anybody to reinterpret (S0-53). */
export function mediatedRequest(step: Authorizable, policy: Policy) {
  const definition = definitionOf(step);
  const run = mediatedContext(step, policy);
  const args = step.authorization.args ?? step.args ?? {};
  const effect: Omit<Effect, 'run_id' | 'idempotency_key'> = {
    action: definition.name,
    args,
    case_id: run.case_id ?? '',
    before: step.authorization.before,
    limits: effectLimits(policy),
  };
  return {
    privileged: privilegedRequest(definition, run),
    hash: sha256(canonicalJson({ action: definition.name, args, case_id: run.case_id })),
    effect,
    local_read: definition.risk === 'read',
    inputs: [step.payload],
    written: writtenArtifact(definition, args, run, step.payload),
  };
}

export const denialOf = ({ rule_id, cause }: Verdict): Fault => ({ code: 'POLICY_VIOLATION', rule_id, cause });

export const failureOf = (cause: ExecutionCause): Fault => ({
  code: 'EXECUTION_ERROR',
  rule_id: `execute.${cause.toLowerCase()}`,
  cause,
});

const NO_CASE: Verdict = { decision: 'deny', rule_id: 'sandbox.no_case', cause: 'SANDBOX' };

const privilegedRequest = (definition: ActionDefinition, run: RunContext): PrivilegedRequest => ({
  tool: definition.tool,
  write: definition.write,
  target_case_id: run.case_id,
  destination: 'platform',
  plane: 'case',
  artifact_flags: [],
});

/** The content of a written file is in the payload already: the reference names it, nothing is stored twice. */
function writtenArtifact(
  definition: ActionDefinition,
  args: JsonObject,
  run: RunContext,
  payload: ArtifactRef,
): ArtifactRef | null {
  const content = args['content'];
  if (definition.write === null || typeof content !== 'string') return null;
  const hash = sha256(content);
  return {
    artifact_id: `sha256:${hash}`,
    artifact_kind: 'file_content',
    hash_sha256: hash,
    byte_size: Buffer.byteLength(content),
    ...(run.case_id === null ? {} : { scope: 'case' as const, case_id: run.case_id }),
    lineage: { derived_from: [payload.artifact_id], transformation: 'args.content' },
  };
}

function definitionOf({ action }: Authorizable): ActionDefinition {
  const definition = findAction(action ?? '');
  if (definition === undefined) throw new InvariantError('AUTHORIZE was reached without an action');
  return definition;
}

const asPolicyCause = (cause: Fault['cause']): Verdict['cause'] =>
  cause === 'SANDBOX' || cause === 'EXTENSION' || cause === 'QUOTA' || cause === 'LIFECYCLE' ? cause : 'LANE';
