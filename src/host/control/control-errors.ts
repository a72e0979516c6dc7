// Converts errors for the control socket: to their code and message, and back to their class.

import Type, { type Static } from 'typebox';
import { closed } from '../../core/contract/shapes.js';
import {
  CodedError,
  InvariantError,
  LedgerError,
  PolicyError,
  RunError,
  SandboxError,
  UsageError,
} from '../../core/errors.js';

export const WireError = Type.Object({ code: Type.String({ maxLength: 80 }), message: Type.String() }, closed);
export type WireError = Static<typeof WireError>;

/** The wire form of an error. An error that is not of this library stays in the log of its process. */
export function toWireError(error: unknown): WireError {
  const code = error instanceof CodedError ? String(error.code) : '';
  return error instanceof Error && ERROR_FACTORIES.has(code)
    ? { code, message: error.message }
    : { code: 'INVARIANT', message: 'the process that has this home failed to answer: see its log' };
}

/** The received error, of its original class. */
export const fromWireError = ({ code, message }: WireError): CodedError =>
  ERROR_FACTORIES.get(code)?.(message) ?? new InvariantError(message);

type ErrorFactory = (message: string) => CodedError;

const errorFactories = <Code extends string>(
  Class: new (options: { readonly code: Code; readonly message: string }) => CodedError<Code>,
  codes: readonly Code[],
): readonly (readonly [string, ErrorFactory])[] =>
  codes.map((code) => [code, (message) => new Class({ code, message })]);

const ERROR_FACTORIES: ReadonlyMap<string, ErrorFactory> = new Map([
  ...errorFactories(LedgerError, [
    'LEDGER_UNAVAILABLE',
    'LEDGER_CONFLICT',
    'LEDGER_COMMIT_UNKNOWN',
    'LEDGER_TAMPERED',
    'LEDGER_BELOW_HEAD',
    'LEDGER_LOCKED',
    'LEDGER_COPIED',
    'LEDGER_ARCHIVED',
    'LEDGER_OF_LATER_VERSION',
    'LEDGER_UNSUPPORTED',
    'LEDGER_ERASED',
  ]),
  ...errorFactories(PolicyError, ['POLICY_UNREADABLE', 'POLICY_INVALID', 'POLICY_UNSUPPORTED']),
  ...errorFactories(RunError, [
    'RUN_ENDED',
    'RUN_UNKNOWN',
    'RUN_KEY_CONFLICT',
    'IDEMPOTENCY_CONFLICT',
    'AGENT_BUSY',
    'INVALID_STATE_TRANSITION',
    'ACT_DENIED',
    'APPROVAL_PENDING',
    'CASE_IN_USE',
    'VOLUME_ELSEWHERE',
    'EXECUTION_SUSPENDED',
    'CASE_CHANGED',
    'CLOSED',
  ]),
  ...errorFactories(RunError, ['STORAGE_LOW', 'STORAGE_BUDGET']),
  ...errorFactories(UsageError, ['USAGE']),
  ...errorFactories(SandboxError, ['UNSUPPORTED_PLATFORM', 'SANDBOX_UNUSABLE']),
]);
