import { existsSync, readFileSync } from 'node:fs';
import { isJsonObject, parseOwnJson } from '../core/contract/json.js';
import { InvariantError } from '../core/errors.js';
import { packageFile } from './package-files.js';

/** The version of this package, from its sources as well as from its build. */
export function readPackageVersion(): string {
  const path = packageFile('package.json');
  const manifest: unknown = existsSync(path) ? parseOwnJson(readFileSync(path, 'utf8')) : null;
  const number = isJsonObject(manifest) ? manifest['version'] : undefined;
  if (typeof number !== 'string') throw new InvariantError('the package has no version');
  return number;
}
