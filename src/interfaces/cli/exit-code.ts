import { CodedError, LedgerError } from '../../core/errors.js';
import { hidePasswords } from '../../home/hide-passwords.js';
import type { ExitCode } from './command.js';
import type { Io } from './io.js';
import { escapeText, jsonLine } from './text/terminal.js';

/** The exit code of an error that has a code; null for an internal error. */
export function exitCodeOf(error: unknown): ExitCode | null {
  const code = codeOf(error);
  if (code === null || code === 'INVARIANT') return null;
  if (code === 'USAGE') return 2;
  if (isNotChecked(error)) return 4;
  if (code.startsWith('LEDGER_') || SANDBOX_CODES.includes(code)) return 3;
  return 1;
}

function codeOf(error: unknown): string | null {
  return error instanceof CodedError ? String(error.code) : null;
}

/** Nothing is wrong with the ledger or the policy: what was requested is not here, or cannot be evaluated here. */
export const isNotChecked = (error: unknown): boolean => NOT_CHECKED_CODES.includes(codeOf(error) ?? '');
const NOT_CHECKED_CODES: readonly string[] = [
  'LEDGER_ARCHIVED',
  'LEDGER_ERASED',
  'LEDGER_OF_LATER_VERSION',
  'LEDGER_UNSUPPORTED',
  'POLICY_UNSUPPORTED',
];
const SANDBOX_CODES: readonly string[] = ['UNSUPPORTED_PLATFORM', 'SANDBOX_UNUSABLE'];

/** For commands that check a ledger: a tampered ledger is their result, with exit code 1. */
export async function exitOneIfTampered(io: Pick<Io, 'stderr'>, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
    await io.stderr.writeLine(errorLine(error));
    return 1;
  }
}

/** An error as one line: `CODE: message`. */
export function errorLine(error: unknown): string {
  const message = messageOf(error);
  const line = message.replace(/:\n/gu, ': ').replace(/\n/gu, '; ');
  return escapeText(hidePasswords(`${codeOf(error) ?? 'UNEXPECTED'}: ${line}`));
}

/** An error as one line of JSON, for `--json`. */
export const errorJson = (error: unknown, exit_code: ExitCode): string =>
  jsonLine({ error: { code: codeOf(error) ?? 'UNEXPECTED', message: hidePasswords(messageOf(error)), exit_code } });

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
