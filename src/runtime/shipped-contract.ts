import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { packageFile } from '../system/package-files.js';

/** The contract folder of this package. */
export const shippedContract = (): string => packageFile('policies/contract/v1');

/** The canonical path of a contract folder, by which two processes can compare theirs. */
export const contractFolder = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path));
