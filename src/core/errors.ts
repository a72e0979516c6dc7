// Errors that this library throws. A rejected or denied proposal is not an error but a value
// (`core/contract/fault.ts`).

/** Base of every error this library throws. `code` is stable; `message` is for people. */
export abstract class CodedError<Code extends string = string> extends Error {
  /** The name of the class: the bundle shortens those of its classes. */
  abstract override readonly name: string;
  readonly code: Code;
  constructor({ code, message, cause }: { readonly code: Code; readonly message: string; readonly cause?: unknown }) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The ledger could not be written, or no longer verifies. The caller must stop (fail closed). */
export class LedgerError extends CodedError<
  | 'LEDGER_UNAVAILABLE' // a commit failed: nothing in it was acknowledged, and nothing more will be written
  | 'LEDGER_CONFLICT' // another writer has appended to the ledger
  | 'LEDGER_COMMIT_UNKNOWN' // the store cannot tell whether a commit happened: the caller may send the same batch again
  | 'LEDGER_TAMPERED' // the stored data differs from what was written
  | 'LEDGER_BELOW_HEAD' // the ledger is shorter than, or differs from, the head in the head file
  | 'LEDGER_LOCKED' // another process holds the writer lock of this home
  | 'LEDGER_COPIED' // the ledger was copied, and continues in the copy
  | 'LEDGER_OF_LATER_VERSION' // a later version of the program started this run tree, and only it can continue it
  | 'LEDGER_UNSUPPORTED' // this installation lacks what the message names, or another version wrote the data
  | 'LEDGER_ERASED' // the required content was erased with its case
  | 'LEDGER_ARCHIVED' // the requested data was moved to an archive file
> {
  override readonly name = 'LedgerError';
}

/**
 * For what a version wrote whose formats this one does not read (decision 0090). The data is not damaged: that version
 * still reads it.
 */
export const oldFormatError = (what: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNSUPPORTED',
    message:
      `${what} is not supported, because an older version of Turnpike with other formats wrote it: export the ledger ` +
      'with `turnpike ledger export` of that version, and start a new home',
  });

/** For data of a format that only later versions know. It is not damaged. */
export const laterFormatError = (what: string, format: number, newest: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNSUPPORTED',
    message: `${what} has format ${format}, and this version of Turnpike knows ${newest}: use the version that wrote it`,
  });

/** A policy file, or the pin of one, cannot be used. */
export class PolicyError extends CodedError<
  'POLICY_UNREADABLE' | 'POLICY_INVALID' | 'POLICY_UNSUPPORTED' // this installation cannot evaluate it: the message says what to install
> {
  override readonly name = 'PolicyError';
}

/** A run cannot do what was requested. No step was made and nothing was executed. */
export class RunError extends CodedError<
  | 'RUN_ENDED' // the run is in a terminal state
  | 'RUN_UNKNOWN' // no run has this id
  | 'RUN_KEY_CONFLICT' // the run of this key was started with other options
  | 'IDEMPOTENCY_CONFLICT' // the id of the request was used for another payload; recorded
  | 'AGENT_BUSY' // 64 proposals are already queued for this agent run
  | 'INVALID_STATE_TRANSITION' // the lifecycle table has no such transition; recorded in the audit (C50)
  | 'ACT_DENIED' // policy denies the act of an operator
  | 'APPROVAL_PENDING' // people have to approve the act of an operator first
  | 'CASE_IN_USE' // a run tree of the case has not ended
  | 'CASE_CHANGED' // the case has read other data while a promotion or export of it was prepared
  | 'STORAGE_LOW' // the disk of the ledger is almost full
  | 'STORAGE_BUDGET' // the run, the case or the actor has used up its storage budget
  | 'VOLUME_ELSEWHERE' // the sandbox of the case is on a volume that this process does not have
  | 'EXECUTION_SUSPENDED' // the ledger was restored from a backup, and no operator has acknowledged it
  | 'CLOSED' // the engine was closed
> {
  override readonly name = 'RunError';
}

export const idempotencyConflict = (): RunError =>
  new RunError({
    code: 'IDEMPOTENCY_CONFLICT',
    message: 'the id of this request was used for another one: use a new id',
  });

/**
 * A step is durable and has its response, but the log does not include it within the time that a caller with
 * `integrated` waits. It will include it.
 */
export class IntegrationError extends CodedError<'NOT_INTEGRATED'> {
  override readonly name = 'IntegrationError';
  /** The response of the step, as `respond` returns it. */
  readonly response: string;
  constructor(response: string) {
    super({ code: 'NOT_INTEGRATED', message: 'the step is recorded, and not in the log yet: see `response`' });
    this.response = response;
  }
}

/** The caller passed an invalid argument or option. */
export class UsageError extends CodedError<'USAGE'> {
  override readonly name = 'UsageError';
}
export const usageError = (message: string): UsageError => new UsageError({ code: 'USAGE', message });

/** The sandbox cannot be secured on this platform, or its directory is not usable. */
export class SandboxError extends CodedError<'UNSUPPORTED_PLATFORM' | 'SANDBOX_UNUSABLE'> {
  override readonly name = 'SandboxError';
}

/** A caller tried to run an effect outside a mediated run. Nothing was executed. */
export class CapabilityError extends CodedError<'NO_CAPABILITY'> {
  override readonly name = 'CapabilityError';
}

/**
 * An action or tool of a service throws this if it certainly has not happened. After any other error it may have
 * happened.
 */
export class ActionNotExecutedError extends CodedError<'NOT_EXECUTED'> {
  override readonly name = 'ActionNotExecutedError';
  /** Whether a retry may help. */
  readonly retryable: boolean;
  constructor(message: string, options: { readonly retryable?: boolean; readonly cause?: unknown } = {}) {
    super({ code: 'NOT_EXECUTED', message, cause: options.cause });
    this.retryable = options.retryable ?? true;
  }
}

/**
 * An action or tool of a service throws this if it certainly ended without success. `partial` is its output until then,
 * which is stored only if the lane permits it (S4-65).
 */
export class ActionFailedError extends CodedError<'FAILED'> {
  override readonly name = 'ActionFailedError';
  readonly retryable: boolean;
  readonly partial: object | null;
  constructor(message: string, options: ActionFailedOptions = {}) {
    super({ code: 'FAILED', message, cause: options.cause });
    this.retryable = options.retryable ?? false;
    this.partial = options.partial ?? null;
  }
}
interface ActionFailedOptions {
  readonly retryable?: boolean;
  readonly partial?: object;
  readonly cause?: unknown;
}

/** A bag (RFC 8493) cannot be read or written. A problem inside a readable bag is a finding, not an error. */
export class BagError extends CodedError<
  | 'BAG_UNREADABLE' // it does not exist, is neither a directory nor an archive, or the disk failed
  | 'BAG_HOSTILE' // the content contradicts the announced sizes or names
  | 'BAG_EXISTS' // the name is taken: existing files are never overwritten
  | 'BAG_UNWRITABLE' // the disk failed or is full; files written so far are removed
> {
  override readonly name = 'BagError';
}

/** The database of a target's records cannot be used. A problem with one record is a value, not an error. */
export class RecordsError extends CodedError<
  | 'RECORDS_UNREACHABLE' // the database cannot be opened or queried
  | 'RECORDS_MISMATCH' // a table lacks a column or the unique constraint that its target needs
  | 'RECORDS_TARGET' // no table can hold a target with this definition
> {
  override readonly name = 'RecordsError';
}

/** An agent could not be called, or gave no usable answer. Nothing was proposed. */
export class AgentError extends CodedError<
  | 'AGENT_FAILED' // its provider refused, failed or returned an unreadable answer
  | 'AGENT_TIMEOUT' // it did not answer in time
  | 'AGENT_OUTPUT_TOO_LARGE' // its answer exceeds the size limit
  | 'AGENT_ABORTED' // the caller no longer waits for its answer
> {
  override readonly name = 'AgentError';
}

/** A call of a governed tool of an SDK has no output. The message is for the model. */
export class GovernedCallError extends CodedError<
  | 'CALL_DENIED' // by policy, by a person, or because the approval has expired
  | 'CALL_PENDING' // a person has to approve it first
  | 'CALL_FAILED' // it was refused, or not executed, or its outcome is not known
> {
  override readonly name = 'GovernedCallError';
}

/** The service behind Restate refuses a call. Only the code travels. */
export class RestateServiceError extends CodedError<
  | 'MESSAGE_INVALID' // the message is too long, not JSON, or not of its schema
  | 'RIGHT_MISSING' // `authorize` has refused the call
  | 'KEY_MISMATCH' // the key of the virtual object is neither the case nor the tree of the run
  | 'PAYLOAD_UNKNOWN' // the exchange has no payload of this hash and length
  | 'IDEMPOTENCY_CONFLICT' // the input id was used for another payload
  | 'STEP_PENDING' // the step is recorded and has no response yet: retried
> {
  override readonly name = 'RestateServiceError';
}

/** A call through Restate failed. The code is that of the service, or UNAVAILABLE: then repeat it, same input id. */
export class RestateClientError extends CodedError {
  override readonly name = 'RestateClientError';
}

/** The machines contradict themselves: a bug in this library, never the caller's mistake. */
export class InvariantError extends CodedError<'INVARIANT'> {
  override readonly name = 'InvariantError';
  constructor(message: string, cause?: unknown) {
    super({ code: 'INVARIANT', message, cause });
  }
}
