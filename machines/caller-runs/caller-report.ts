// The end of a run whose action the caller of the agent executes (U-10): by its report, or without one.

import type { ArtifactRef } from '../../src/core/contract/artifact-ref.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { ReportOrigin } from '../../src/core/contract/run/report-origin.js';
import type { Emission } from '../emission.js';
import { executionFailureEnd, type MediatedMemory } from '../mediated-memory.js';

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
