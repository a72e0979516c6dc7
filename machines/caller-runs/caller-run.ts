// A caller run is the run of an action that the caller of an agent executes (U-08). Its step ends with the decision, so
// the run is a child of the agent run and not of the step: it waits for the report while the agent makes other
// proposals.
//
//   step                                      agent                        mediated run
//   startingCallerRun ── START_CALLER_RUN ──▶ spawns the run ─ AUTHORIZE ─▶ created
//   EXECUTE           ◀── STARTED ─────────── passes on ◀──── STARTED ───── running, waits for REPORT

import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import type { RunContext } from '../../src/core/contract/run/run-context.js';
import { LATEST_TIMESTAMP_MS } from '../../src/core/contract/shapes.js';
import type { Policy } from '../../src/core/policy/policy.js';
import type { Verdict } from '../../src/core/policy/verdict.js';
import { denialFault, RUN_ENDING_DENIAL } from '../../src/core/step/authorization.js';
import { firstAttempt, mediatedContext, mediatedRequest, reportTimeout } from '../../src/core/step/mediated-request.js';
import type { AgentMemory } from '../agent-memory.js';
import { type StepMemory, repeatedKey } from '../step-memory.js';
import { type MediatedRequest, executionFailureEnd, type MediatedMemory } from '../mediated-memory.js';
import type { DoneEvent, RunOutput } from '../run.js';
import type { ArtifactRef } from '../../src/core/contract/artifact-ref.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { ReportOrigin } from '../../src/core/contract/run/report-origin.js';
import type { Emission } from '../emission.js';

/** A step asks its agent run to start the run of an action that the caller executes. */
export interface StartCallerRunEvent {
  readonly type: 'START_CALLER_RUN';
  readonly run: RunContext;
  readonly request: MediatedRequest;
  readonly verdict: Verdict;
  readonly overlay: OverlayFact | null;
  readonly digest: string | null;
}

/** The run of an action that the caller executes was denied. */
export interface CallerRunDeniedEvent {
  readonly type: 'CALLER_RUN_DENIED';
  readonly denied_by: Verdict;
}

export function startCallerRunEvent(step: StepMemory, policy: Policy): StartCallerRunEvent {
  const attempt = firstAttempt(mediatedContext(step, policy), repeatedKey(step, policy));
  const timeout_ms = reportTimeout(step, policy.catalogue) ?? 0;
  const due = Math.min(Date.parse(step.received_at) + timeout_ms, LATEST_TIMESTAMP_MS);
  return {
    type: 'START_CALLER_RUN',
    run: attempt.run,
    request: { ...mediatedRequest(step, attempt, policy), report_due: new Date(due).toISOString() },
    verdict: step.authorization.verdict ?? RUN_ENDING_DENIAL,
    overlay: step.overlay,
    digest: step.authorization.digest,
  };
}

/** The response tells the caller that it may execute the action, and the run that takes its report. */
export const authorizedResult = ({ mediated_run_id }: { readonly mediated_run_id: string | null }) => ({
  authorized: true,
  run_id: mediated_run_id,
});

export const callerRunDenialFault = (event: { readonly type: string }) => ({
  fault: denialFault(isCallerRunDenied(event) ? event.denied_by : RUN_ENDING_DENIAL),
  phase_failed_at: 'AUTHORIZE' as const,
});

const isCallerRunDenied = (event: { readonly type: string }): event is CallerRunDeniedEvent =>
  event.type === 'CALLER_RUN_DENIED';

/** The runs of the agent that wait for a report, after one has ended. Its report counts as activity of the agent. */
export function removeCallerRun(
  { caller_runs = [], active_at }: AgentMemory,
  { output }: DoneEvent,
): Pick<AgentMemory, 'active_at'> & { readonly caller_runs: readonly string[] } {
  const reported_at = output.done?.at ?? active_at;
  return {
    caller_runs: caller_runs.filter((run_id) => run_id !== output.run_id),
    active_at: reported_at > active_at ? reported_at : active_at,
  };
}

export const callerRunDeniedEvent = (output: Partial<Pick<RunOutput, 'done'>>): CallerRunDeniedEvent => ({
  type: 'CALLER_RUN_DENIED',
  denied_by: output.done?.denied_by ?? RUN_ENDING_DENIAL,
});

// The end of a run whose action the caller of the agent executes (U-10): by its report, or without one.

/** What the caller says of an action that it has executed. */
export interface ReportEvent {
  readonly type: 'REPORT';
  readonly status: 'done' | 'failed' | 'unknown';
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  readonly reported: ReportOrigin;
  readonly time: string;
}

/** Applies the report of the caller. Its result is recorded also for an action that failed. */
export function applyReport(
  { request }: MediatedMemory,
  { status, result, result_ref, reported, time: at }: ReportEvent,
): Partial<MediatedMemory> {
  if (status === 'done')
    return { done: { result: result ?? {}, result_ref, cause: null, denied_by: null, at, reported } };
  const cause = status === 'unknown' ? 'OUTCOME_UNKNOWN' : 'FAILED';
  return {
    end: executionFailureEnd(cause, request.idempotent),
    done: { result: null, result_ref, cause, denied_by: null, at, reported },
  };
}

/** No report has come by the deadline, or before the agent run ended. */
export const applyMissingReport = ({ request, done }: MediatedMemory): Partial<MediatedMemory> => ({
  end: executionFailureEnd('OUTCOME_UNKNOWN', request.idempotent),
  done: { ...done, cause: 'OUTCOME_UNKNOWN' },
});

/** Whether the time for the report is over. */
export const isReportOverdue = ({ request }: MediatedMemory, now: string): boolean =>
  request.report_due !== undefined && now >= request.report_due;

/** Wakes the run when the time for the report is over. */
export const reportTimer = ({ run, request }: MediatedMemory): Emission => ({
  type: 'timer',
  run_id: run.run_id,
  // Stryker disable next-line StringLiteral: the run has a deadline
  at: request.report_due ?? '',
});

/** People can find out an outcome that stays unknown (D8). */
export const unknownEmissions = ({ run, request, done }: MediatedMemory): readonly Emission[] =>
  done.cause === 'OUTCOME_UNKNOWN'
    ? [{ type: 'unknown', run_id: run.run_id, request_hash: request.hash, idempotency_key: run.run_id }]
    : [];
