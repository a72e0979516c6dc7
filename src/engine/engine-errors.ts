// Errors for inputs that the engine rejects.

import { LedgerError, RunError } from '../core/errors.js';

export const queueFullError = (waiting: number): RunError =>
  new RunError({ code: 'AGENT_BUSY', message: `${waiting} inputs already wait` });

export const closedError = (): RunError => new RunError({ code: 'CLOSED', message: 'the engine was closed' });

export const unknownTreeError = (tree_id: string): RunError =>
  new RunError({ code: 'RUN_UNKNOWN', message: `there is no run tree ${tree_id}` });

export const caseInUseError = (case_id: string, tree_id: string): RunError =>
  new RunError({ code: 'CASE_IN_USE', message: `run tree ${tree_id} of case ${case_id} has not ended: end it first` });

export const sandboxElsewhereError = (): RunError =>
  new RunError({
    code: 'VOLUME_ELSEWHERE',
    message: 'this process has no sandbox volume: send the request to a worker that has it (`turnpike cluster status`)',
  });

export const executionSuspendedError = (): RunError =>
  new RunError({
    code: 'EXECUTION_SUSPENDED',
    message:
      'this ledger was restored from a backup, and effects may have happened after it: nothing is executed until an ' +
      'operator has checked them and run `turnpike restore acknowledge`',
  });

export const caseChangedError = (): RunError =>
  new RunError({
    code: 'CASE_CHANGED',
    message: 'runs of the case have read other data meanwhile: nothing was started, try again',
  });

export const ledgerUnavailableError = (cause: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNAVAILABLE',
    message: 'the ledger could not be written: the engine accepts nothing until the ledger is opened again',
    cause,
  });

export const effectsInFlightError = (cause: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNAVAILABLE',
    message: 'effects from before the failure are still in flight: restart again when they have ended',
    cause,
  });
