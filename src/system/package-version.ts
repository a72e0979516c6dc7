import { existsSync, readFileSync } from 'node:fs';
import { parseOwnJson } from '../core/contract/json/own-json.js';
import { isJsonObject } from '../core/contract/json.js';
import { InvariantError } from '../core/errors.js';

/** The version of this package, from its sources as well as from its build. */
export function readPackageVersion(): string {
  const candidates = ['../../package.json', '../../../package.json'].map((path) => new URL(path, import.meta.url));
  const found = candidates.find((url) => existsSync(url));
  const manifest: unknown = found === undefined ? null : parseOwnJson(readFileSync(found, 'utf8'));
  const number = isJsonObject(manifest) ? manifest['version'] : undefined;
  if (typeof number !== 'string') throw new InvariantError('the package has no version');
  return number;
}
