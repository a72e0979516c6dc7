import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The contract folder of this package, from its sources as well as from its build. */
export function shippedContract(): string {
  const candidates = ['../../policies/contract/v1', '../../../policies/contract/v1'];
  const found = candidates
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path));
  return found ?? fileURLToPath(new URL('../../policies/contract/v1', import.meta.url));
}

/** The one name of a contract folder, by which two processes can tell whether they mean the same. */
export const contractFolder = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path));
