// Errors of the linter that an operator has accepted, for a reason. An acceptance is of one finding in a file as it is:
// a copy of the file is the same decision, and the next edit is another one.

import { readAcceptedCautions } from '../../adapters/policy/manifest-policy-source.js';
import { sha256 } from '../../contract/hash.js';
import { POLICY_FILES, type AcceptedCaution } from '../../contract/policy/pins.js';
import { LINT_RULE_IDS, type LintMessage } from '../../policy/lint/lint-rules.js';
import { shippedContract } from '../../runtime/shipped-contract.js';
import type { CommandArguments, CliCommand } from '../command.js';
import { commandUsageError } from '../arguments.js';
import { displayPath, type LoadedPolicy } from './folders.js';
import type { Io } from '../io.js';

/** A caution with the bytes that it is about. */
export interface FileLintMessage extends LintMessage {
  readonly sha256: string;
}

/** The cautions of a loaded policy, each with the hash of its file. */
export function collectLintErrors({ files, cautions }: LoadedPolicy, io: Io): readonly FileLintMessage[] {
  const hashes = new Map(POLICY_FILES.map((name) => [displayPath(files[name].path, io), sha256(files[name].bytes)]));
  return cautions.map((caution) => ({ ...caution, sha256: hashes.get(caution.file) ?? '' }));
}

/** What the contract folder has accepted, and what the shipped one has of the files that it ships. */
export const readEarlierAcceptances = async (contract: string): Promise<readonly AcceptedCaution[]> => [
  ...(await readAcceptedCautions(contract)),
  ...(await readAcceptedCautions(shippedContract())),
];

/** The reason for which this finding was accepted for these very bytes; null where it was not. */
export const findAcceptanceReason = (caution: FileLintMessage, accepted: readonly AcceptedCaution[]): string | null =>
  accepted.find(
    ({ rule, sha256: of, message = caution.message }) =>
      rule === caution.rule && of === caution.sha256 && message === caution.message,
  )?.reason ?? null;

/** `--accept RULE --reason TEXT`, each pair once. @throws UsageError */
export function parseAcceptances(command: CliCommand, args: CommandArguments): ReadonlyMap<string, string> {
  const [rules, reasons] = [args.list('accept'), args.list('reason')];
  if (rules.length !== reasons.length)
    throw commandUsageError(command, 'each --accept RULE needs a --reason TEXT of its own');
  for (const [index, rule] of rules.entries()) {
    if (!(LINT_RULE_IDS as readonly string[]).includes(rule)) {
      throw commandUsageError(
        command,
        `--accept takes a rule of \`turnpike policy check\`, not ${JSON.stringify(rule)}`,
      );
    }
    const reason = reasons[index] ?? '';
    if (reason.trim() === '' || reason.length > REASON_CHARS_MAX || !reason.isWellFormed()) {
      throw commandUsageError(command, `--reason takes 1 to ${REASON_CHARS_MAX} characters`);
    }
  }
  return new Map(rules.map((rule, index) => [rule, reasons[index] ?? '']));
}
const REASON_CHARS_MAX = 400;
