// Errors as they travel over the control socket: by their code and message, and as what they were when they arrive.

import Type, { type Static } from 'typebox';
import { closed } from '../contract/shapes.js';
import { CodedError, InvariantError, LedgerError, PolicyError, RunError, SandboxError, UsageError } from '../errors.js';

export const Refusal = Type.Object({ code: Type.String({ maxLength: 80 }), message: Type.String() }, closed);
export type Refusal = Static<typeof Refusal>;

/** An error as it travels. What is no error of ours stays where it happened, in the log of that process. */
export function refusalOf(error: unknown): Refusal {
  const code = error instanceof CodedError ? String(error.code) : '';
  return error instanceof Error && MAKERS.has(code)
    ? { code, message: error.message }
    : { code: 'INVARIANT', message: 'the process that has this home failed to answer: see its log' };
}

/** The error that travelled, of the class that it had. */
export const errorFrom = ({ code, message }: Refusal): CodedError =>
  MAKERS.get(code)?.(message) ?? new InvariantError(message);

type Maker = (message: string) => CodedError;

const makers = <Code extends string>(
  Class: new (options: { readonly code: Code; readonly message: string }) => CodedError<Code>,
  codes: readonly Code[],
): readonly (readonly [string, Maker])[] => codes.map((code) => [code, (message) => new Class({ code, message })]);

const MAKERS: ReadonlyMap<string, Maker> = new Map([
  ...makers(LedgerError, [
    'LEDGER_UNAVAILABLE',
    'LEDGER_CONFLICT',
    'LEDGER_COMMIT_UNKNOWN',
    'LEDGER_TAMPERED',
    'LEDGER_BELOW_HEAD',
    'LEDGER_LOCKED',
    'LEDGER_ARCHIVED',
    'LEDGER_ERASED',
  ]),
  ...makers(PolicyError, ['POLICY_UNREADABLE', 'POLICY_INVALID']),
  ...makers(RunError, ['RUN_ENDED', 'RUN_UNKNOWN', 'AGENT_BUSY', 'INVALID_STATE_TRANSITION', 'CASE_IN_USE', 'CLOSED']),
  ...makers(RunError, ['STORAGE_LOW', 'STORAGE_BUDGET']),
  ...makers(UsageError, ['USAGE']),
  ...makers(SandboxError, ['UNSUPPORTED_PLATFORM', 'SANDBOX_UNUSABLE']),
]);
