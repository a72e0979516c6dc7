// Breakdowns, as opposed to refusals: a refusal is a value (`contract/fault.ts`), a breakdown is thrown.

/** Base of every error this library throws. `code` is stable; `message` is for people. */
export abstract class CodedError<Code extends string = string> extends Error {
  readonly code: Code;
  constructor({ code, message, cause }: { readonly code: Code; readonly message: string; readonly cause?: unknown }) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
  }
}

/** The ledger could not be written, or no longer verifies. Whoever sees it must stop (fail closed). */
export class LedgerError extends CodedError<
  | 'LEDGER_UNAVAILABLE' // a commit failed: nothing of it was acknowledged, and nothing more will be written
  | 'LEDGER_CONFLICT' // another writer has moved the ledger on
  | 'LEDGER_COMMIT_UNKNOWN' // the store cannot tell whether a commit happened: the same batch may be sent again
  | 'LEDGER_TAMPERED' // what is stored is not what was written
  | 'LEDGER_BELOW_HEAD' // the ledger is shorter than, or differs from, what the head file vouches for
  | 'LEDGER_LOCKED' // another process holds the writer lock of this home
  | 'LEDGER_ERASED' // the content that this needs was erased with its case
  | 'LEDGER_ARCHIVED' // what is asked for was moved to an archive file
> {}

/** The policy, or a pin of it, cannot be used. */
export class PolicyError extends CodedError<'POLICY_UNREADABLE' | 'POLICY_INVALID'> {}

/** A run cannot do what was asked of it. No step was made, nothing was executed. */
export class RunError extends CodedError<
  | 'RUN_ENDED' // the run is in a terminal state
  | 'RUN_UNKNOWN' // no run has this id
  | 'AGENT_BUSY' // 64 proposals already wait for this agent run
  | 'INVALID_STATE_TRANSITION' // the lifecycle table has no such edge; recorded in the audit (C50)
  | 'CASE_IN_USE' // a run tree of the case has not ended
  | 'STORAGE_LOW' // the disk of the ledger is almost full
  | 'STORAGE_BUDGET' // the run, the case or the actor has used up what it may store
  | 'CLOSED' // the engine was closed
> {}

/** The caller passed something this library cannot take. */
export class UsageError extends CodedError<'USAGE'> {}

/** The sandbox cannot be kept safe on this platform, or its directory is not usable. */
export class SandboxError extends CodedError<'UNSUPPORTED_PLATFORM' | 'SANDBOX_UNUSABLE'> {}

/** Somebody tried to perform an effect outside a mediated run. Nothing was done. */
export class CapabilityError extends CodedError<'NO_CAPABILITY'> {}

/** What an action or tool of a service throws when it certainly has not happened; after anything else it may have. */
export class ActionNotExecutedError extends CodedError<'NOT_EXECUTED'> {
  /** Whether it may help to try again. */
  readonly retryable: boolean;
  constructor(message: string, options: { readonly retryable?: boolean; readonly cause?: unknown } = {}) {
    super({ code: 'NOT_EXECUTED', message, cause: options.cause });
    this.retryable = options.retryable ?? true;
  }
}

/**
 * What an action or tool of a service throws when it has ended without success, and that is certain. `partial` is what
 * it had made until then; it is kept only where the lane permits that (S4-65).
 */
export class ActionFailedError extends CodedError<'FAILED'> {
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

/** A bag (RFC 8493) cannot be read or written. What is wrong in a bag that can be read is a finding, not an error. */
export class BagError extends CodedError<
  | 'BAG_UNREADABLE' // it is not there, is no folder or archive, or the disk failed
  | 'BAG_HOSTILE' // what was read contradicts what was announced
  | 'BAG_EXISTS' // something has the name already: nothing is ever written over
  | 'BAG_UNWRITABLE' // the disk failed or is full; what was written is taken away
> {}

/** The records of targets cannot be kept where they are to be. What becomes of one record is a value, not an error. */
export class RecordsError extends CodedError<
  | 'RECORDS_UNREACHABLE' // the database cannot be opened or asked
  | 'RECORDS_MISMATCH' // a table lacks a column or the unique constraint that its target needs
  | 'RECORDS_TARGET' // a target is defined in a way that no table can hold
> {}

/** An agent could not be asked, or did not answer in a way that can be handed on. Nothing was proposed. */
export class AgentError extends CodedError<
  | 'AGENT_FAILED' // its provider refused, broke down, or answered what cannot be read
  | 'AGENT_TIMEOUT' // it did not answer in time
  | 'AGENT_OUTPUT_TOO_LARGE' // it said more than is taken in
  | 'AGENT_ABORTED' // nobody waits for its answer any more
> {}

/** The machines contradicted themselves: a bug of this library, never of a caller. */
export class InvariantError extends CodedError<'INVARIANT'> {
  constructor(message: string, cause?: unknown) {
    super({ code: 'INVARIANT', message, cause });
  }
}
