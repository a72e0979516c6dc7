// Errors of the linter that an operator has accepted, for a reason. An acceptance is of one finding in a file as it is:
// a copy of the file is the same decision, and the next edit is another one.

import { acceptedIn } from '../adapters/manifest-policy-source.js';
import { sha256 } from '../contract/hash.js';
import { POLICY_FILES, type AcceptedCaution } from '../contract/pins.js';
import { LINT_RULE_IDS, type Caution } from '../policy/caution.js';
import { shippedContract } from '../runtime/shipped-contract.js';
import type { Args, Command } from './command.js';
import { wrong } from './arguments.js';
import { shownPath, type LoadedPolicy } from './folders.js';
import type { Io } from './io.js';

/** A caution with the bytes that it is about. */
export interface CautionOfBytes extends Caution {
  readonly sha256: string;
}

/** The cautions of a loaded policy, each with the hash of its file. */
export function cautionsOf({ files, cautions }: LoadedPolicy, io: Io): readonly CautionOfBytes[] {
  const hashes = new Map(POLICY_FILES.map((name) => [shownPath(files[name].path, io), sha256(files[name].bytes)]));
  return cautions.map((caution) => ({ ...caution, sha256: hashes.get(caution.file) ?? '' }));
}

/** What the contract folder has accepted, and what the shipped one has of the files that it ships. */
export const acceptedBefore = async (contract: string): Promise<readonly AcceptedCaution[]> => [
  ...(await acceptedIn(contract)),
  ...(await acceptedIn(shippedContract())),
];

/** The reason for which this finding was accepted for these very bytes; null where it was not. */
export const reasonFor = (caution: CautionOfBytes, accepted: readonly AcceptedCaution[]): string | null =>
  accepted.find(
    ({ rule, sha256: of, message = caution.message }) =>
      rule === caution.rule && of === caution.sha256 && message === caution.message,
  )?.reason ?? null;

/** `--accept RULE --reason TEXT`, each pair once. @throws UsageError */
export function acceptancesOf(command: Command, args: Args): ReadonlyMap<string, string> {
  const [rules, reasons] = [args.list('accept'), args.list('reason')];
  if (rules.length !== reasons.length) throw wrong(command, 'each --accept RULE needs a --reason TEXT of its own');
  for (const [index, rule] of rules.entries()) {
    if (!(LINT_RULE_IDS as readonly string[]).includes(rule)) {
      throw wrong(command, `--accept takes a rule of \`turnpike policy check\`, not ${JSON.stringify(rule)}`);
    }
    const reason = reasons[index] ?? '';
    if (reason.trim() === '' || reason.length > REASON_CHARS_MAX || !reason.isWellFormed()) {
      throw wrong(command, `--reason takes 1 to ${REASON_CHARS_MAX} characters`);
    }
  }
  return new Map(rules.map((rule, index) => [rule, reasons[index] ?? '']));
}
const REASON_CHARS_MAX = 400;
