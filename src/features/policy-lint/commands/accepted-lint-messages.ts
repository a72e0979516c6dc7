// Errors of the linter that an operator has accepted, with a reason. Each acceptance is for one finding in the exact
// bytes of a file: it also applies to a copy of the file, but not to an edited version.

import { readAcceptedCautions } from '../../../home/policy/manifest-policy-source.js';
import { sha256 } from '../../../core/contract/hash.js';
import { valuesOf, type AcceptedCaution } from '../../../core/contract/policy/pins.js';
import type { LintMessage } from '../../../home/policy/policy-linter.js';
import { LINT_RULE_IDS } from '../lint-rules.js';
import { shippedContract } from '../../../runtime/shipped-contract.js';
import type { CommandArguments, CliCommand } from '../../../interfaces/cli/command.js';
import { commandUsageError } from '../../../interfaces/cli/arguments.js';
import { displayPath, type LoadedPolicy } from '../../../interfaces/cli/options/folders.js';
import type { Io } from '../../../interfaces/cli/io.js';

/** An error with the hash of the file that it is about. */
export interface FileLintMessage extends LintMessage {
  readonly sha256: string;
}

/** The errors of a loaded policy, each with the hash of its file. */
export function collectLintErrors({ files, identities, cautions }: LoadedPolicy, io: Io): readonly FileLintMessage[] {
  const all = [...valuesOf(files), ...(identities === null ? [] : [identities])];
  const hashes = new Map(all.map(({ path, bytes }) => [displayPath(path, io), sha256(bytes)]));
  return cautions.map((caution) => ({ ...caution, sha256: hashes.get(caution.file) ?? '' }));
}

/** The acceptances in the contract folder, and those that the package has for the files that it ships. */
export const readEarlierAcceptances = async (contract: string): Promise<readonly AcceptedCaution[]> => [
  ...(await readAcceptedCautions(contract)),
  ...(await readAcceptedCautions(shippedContract())),
];

/** The reason for which this finding was accepted for exactly these bytes; null if it was not. */
export const findAcceptanceReason = (caution: FileLintMessage, accepted: readonly AcceptedCaution[]): string | null =>
  accepted.find(
    ({ rule, sha256: of, message = caution.message }) =>
      rule === caution.rule && of === caution.sha256 && message === caution.message,
  )?.reason ?? null;

/**
 * Parses the pairs `--accept RULE --reason TEXT`, each at most once.
 * @throws UsageError
 */
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
