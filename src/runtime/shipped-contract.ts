import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file or folder of this package, for source files and for built files. */
export function packageFile(path: string): string {
  const candidates = ['../../', '../../../'].map((up) => fileURLToPath(new URL(`${up}${path}`, import.meta.url)));
  return candidates.find((candidate) => existsSync(candidate)) ?? candidates[0] ?? path;
}

/** The contract folder of this package. */
export const shippedContract = (): string => packageFile('policies/contract/v1');

/** The canonical path of a contract folder, by which two processes can compare theirs. */
export const contractFolder = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path));
