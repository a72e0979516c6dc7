// Errors of the linter that an operator has accepted, with a reason. Each acceptance is for one finding in the exact
// bytes of a file: it also applies to a copy of the file, but not to an edited version.

import { readAcceptedCautions } from '../../../home/policy/manifest-policy-source.js';
import { sha256 } from '../../../core/contract/hash.js';
import { valuesOf, type AcceptedCaution } from '../../../core/contract/policy/pins.js';
import type { LintMessage } from '../../../home/policy/policy-linter.js';
import { shippedContract } from '../../../runtime/shipped-contract.js';
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
