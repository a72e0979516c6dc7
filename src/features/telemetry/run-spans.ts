// Names and attributes of spans: the semantic conventions of OpenTelemetry for generative AI where they have a name,
// and names below `turnpike.` for the rest.

import { isIdentifier } from '../../core/contract/free-text.js';
import { type RunContext, rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import type { Attributes } from '../../engine/ports/telemetry.js';
import type { RunSpan } from './run-traces.js';

/** A run with the names that its span may show. */
export interface NamedRun extends Partial<Pick<RunContext, 'actor' | 'role_id' | 'lane_id'>> {
  readonly run_id: string;
  readonly run_kind: RunContext['run_kind'] | 'session';
  /** Whether this process did not see the start of the run. */
  readonly isResumed?: boolean;
}

export function runSpan(run: NamedRun, startMs: number): RunSpan {
  const { run_id, run_kind, role_id, lane_id, actor, isResumed = false } = run;
  const attributes: Record<string, string | boolean> = {
    'gen_ai.conversation.id': rootRunIdOf(run_id),
    'turnpike.run.id': run_id,
    'turnpike.run.kind': run_kind,
  };
  if (role_id !== undefined) attributes['turnpike.role'] = role_id;
  if (lane_id !== undefined && lane_id !== null) attributes['turnpike.lane'] = lane_id;
  if (isResumed) attributes['turnpike.run.resumed'] = true;
  if (run_kind !== 'agent') {
    attributes['gen_ai.operation.name'] = 'invoke_workflow';
    attributes['gen_ai.workflow.name'] = run_kind;
    return { name: `invoke_workflow ${run_kind}`, startMs, attributes };
  }
  attributes['gen_ai.operation.name'] = 'invoke_agent';
  attributes['gen_ai.provider.name'] = 'turnpike';
  if (role_id !== undefined) attributes['gen_ai.agent.name'] = role_id;
  if (actor !== undefined && isIdentifier(actor.actor_id)) attributes['gen_ai.agent.id'] = actor.actor_id;
  return { name: role_id === undefined ? 'invoke_agent' : `invoke_agent ${role_id}`, startMs, attributes };
}

/** @param action its name if the catalogue has it */
export function stepAttributes(trace: StepTrace, action: string): Attributes {
  const { step_index, outcome, rule_id, phase_failed_at } = trace;
  const attributes: Record<string, string | number> = {
    'turnpike.action': action,
    'turnpike.outcome': outcome,
    'turnpike.step.index': step_index,
  };
  if (rule_id !== null) attributes['turnpike.rule'] = rule_id;
  if (phase_failed_at !== null) attributes['turnpike.phase.failed'] = phase_failed_at;
  return attributes;
}
