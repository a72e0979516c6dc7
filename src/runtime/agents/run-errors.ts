import { RunError } from '../../core/errors.js';

export const runClosedError = (): RunError =>
  new RunError({ code: 'CLOSED', message: 'this process has released the run' });
export const unknownRunError = (run_id: string): RunError =>
  new RunError({ code: 'RUN_UNKNOWN', message: `there is no agent run ${run_id} in this ledger` });
export const runEndedError = (run_id: string): RunError =>
  new RunError({ code: 'RUN_ENDED', message: `run ${run_id} is not running: start a new one` });
export const stepInFlightError = (run_id: string): RunError =>
  new RunError({ code: 'AGENT_BUSY', message: `another step of run ${run_id} is still in flight: try again later` });

/** For a run that has ended: there is nothing to cancel. */
export const runNotCancellableError = (run_id: string): RunError =>
  new RunError({ code: 'INVALID_STATE_TRANSITION', message: `run ${run_id} has ended and cannot be cancelled` });
