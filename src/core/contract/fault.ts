// The closed registry of faults: every code with its outcome, its phase and the one message that an agent may see.
// docs/errors.md describes the same table; a test compares the two.

import type { Outcome, Phase } from './run/phase.js';

interface FaultClass {
  readonly outcome: Exclude<Outcome, 'SUCCESS'>;
  readonly phase: Phase;
  readonly message: string;
}

/** Every error_code of a response (C03). The message is constant: it tells an agent nothing about the host. */
export const FAULTS = {
  EMPTY_PAYLOAD: { outcome: 'VALIDATION_ERROR', phase: 'RECEIVE', message: 'Empty payload' },
  PAYLOAD_TOO_LARGE: { outcome: 'VALIDATION_ERROR', phase: 'RECEIVE', message: 'Payload too large' },
  INVALID_ENCODING: { outcome: 'VALIDATION_ERROR', phase: 'RECEIVE', message: 'Payload is not valid UTF-8' },
  INVALID_JSON: { outcome: 'VALIDATION_ERROR', phase: 'PARSE', message: 'Invalid JSON format' },
  SCHEMA_VIOLATION: {
    outcome: 'VALIDATION_ERROR',
    phase: 'VALIDATE_SCHEMA',
    message:
      'Proposal must be an object with exactly: schema_version (1.x.y), id (UUID), reasoning (non-empty), action, args (object)',
  },
  SCHEMA_VERSION_INCOMPATIBLE: {
    outcome: 'VALIDATION_ERROR',
    phase: 'VALIDATE_SCHEMA',
    message: 'schema_version is not supported: use 1.x.y',
  },
  DUPLICATE_PROPOSAL_ID: {
    outcome: 'VALIDATION_ERROR',
    phase: 'VALIDATE_SCHEMA',
    message: 'Proposal id was used before: use a new UUID',
  },
  ACTION_NOT_ALLOWED: { outcome: 'DENIED', phase: 'VALIDATE_ACTION', message: 'Action is not allowed' },
  INVALID_ARGS: {
    outcome: 'VALIDATION_ERROR',
    phase: 'VALIDATE_ARGS',
    message:
      "Arguments do not match the action's schema (paths start with /sandbox/ and have no empty, '.' or '..' segment)",
  },
  POLICY_VIOLATION: { outcome: 'DENIED', phase: 'AUTHORIZE', message: 'The policy does not allow this' },
  EXECUTION_ERROR: { outcome: 'EXECUTION_ERROR', phase: 'EXECUTE', message: 'The action failed' },
  AUDIT_FAILURE: {
    outcome: 'EXECUTION_ERROR',
    phase: 'RECORD',
    message: 'The step could not be recorded; the run has stopped',
  },
} as const satisfies Record<string, FaultClass>;
/** One of `FAULT_CODES`. */
export type FaultCode = keyof typeof FAULTS;
/** The error codes of responses. */
export const FAULT_CODES = Object.keys(FAULTS) as readonly FaultCode[];

/**
 * Why a policy denied a request: `cause` in trace and audit; chooses the constant message of POLICY_VIOLATION (C08,
 * D17).
 */
export const POLICY_CAUSES = {
  SANDBOX: 'Access outside /sandbox/ is not allowed',
  EXTENSION: 'File extension is not allowed for this action',
  LANE: 'This run is not allowed to do this',
  QUOTA: 'Sandbox quota exceeded',
  LIFECYCLE: 'The run cannot act in its present state',
  BUDGET: 'The budget of this run is used up',
  APPROVAL_REQUIRED: 'This needs an approval',
  REQUEST_PENDING: 'A request of this run still waits for its approval',
  REQUEST_APPROVED: 'A request of this run was approved: propose it again, or finish without it',
  CONDITION: 'A condition of the policy does not allow this',
  UNSETTLED: 'It is not known whether the same action happened before',
  OVERLAY: 'This is suspended',
} as const;
/** One of the keys of `POLICY_CAUSES`. */
export type PolicyCause = keyof typeof POLICY_CAUSES;

/** Which kind of argument is wrong: chooses the message of INVALID_ARGS (C94). */
export const ARGUMENT_CAUSES = {
  PATH: FAULTS.INVALID_ARGS.message,
  ARGUMENT: "Arguments do not match the action's schema",
} as const;
/** One of the keys of `ARGUMENT_CAUSES`. */
export type ArgumentCause = keyof typeof ARGUMENT_CAUSES;

/** Why an execution failed: the stable error types of S0-54, `cause` in trace and audit (C04). */
export const EXECUTION_CAUSES = {
  FILE_NOT_FOUND: { message: 'File not found', retryable: false },
  IS_A_DIRECTORY: { message: 'Path is a directory', retryable: false },
  NOT_A_DIRECTORY: { message: 'Path is not a directory', retryable: false },
  ALREADY_EXISTS: { message: 'Target already exists', retryable: false },
  PERMISSION_DENIED: { message: 'Permission denied', retryable: false },
  NO_SPACE: { message: 'No space left', retryable: true },
  NOT_TEXT: { message: 'File is not UTF-8 text', retryable: false },
  TOO_LARGE: { message: 'File is too large', retryable: false },
  SANDBOX_CHANGED: { message: 'The file changed while it was used', retryable: true },
  IO_ERROR: { message: 'Input/output error', retryable: true },
  TIMEOUT: { message: 'The action timed out', retryable: true },
  NOT_EXECUTED: { message: 'The action was not executed', retryable: true },
  REFUSED: { message: 'The tool refused the request', retryable: false },
  FAILED: { message: 'The action failed', retryable: false },
  FAILED_FOR_NOW: { message: 'The action failed, and may succeed later', retryable: true },
  REPEATABLE: { message: 'The action failed, and can be repeated', retryable: true },
  INVALID_RECORD: { message: 'The table does not take this record', retryable: false },
  INTERRUPTED: { message: 'The action was interrupted before it happened', retryable: true },
  OUTCOME_UNKNOWN: { message: 'It is not known whether the action happened', retryable: false },
  INTERNAL: { message: 'Internal error', retryable: false },
} as const satisfies Record<string, { readonly message: string; readonly retryable: boolean }>;
/** One of the keys of `EXECUTION_CAUSES`. */
export type ExecutionCause = keyof typeof EXECUTION_CAUSES;

/** A fault as data. Phases return it; they do not throw it. */
export interface Fault {
  readonly code: FaultCode;
  readonly cause: PolicyCause | ArgumentCause | ExecutionCause | null;
  /** The rule that decided, for example `lane.tool_not_allowed`. For the audit; never sent to the agent. */
  readonly rule_id: string;
  /** The field and the constraint that it breaks, in words of a schema (C94). Bounded, and without text of an agent. */
  readonly explanation?: string;
}

export type CheckedValue<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: Fault };

export const passWith = <T>(value: T): CheckedValue<T> => ({ ok: true, value });

export const rejectWith = (code: FaultCode, rule_id: string, cause: Fault['cause'] = null): CheckedValue<never> => ({
  ok: false,
  fault: { code, cause, rule_id },
});

/** The constant text of a fault for the agent: chosen by its cause if it has one, else by its code. */
export function messageOf({ code, cause }: Pick<Fault, 'code' | 'cause'>): string {
  if (cause === null) return FAULTS[code].message;
  if (cause in POLICY_CAUSES) return POLICY_CAUSES[cause as PolicyCause];
  if (cause in ARGUMENT_CAUSES) return ARGUMENT_CAUSES[cause as ArgumentCause];
  return EXECUTION_CAUSES[cause as ExecutionCause].message;
}
