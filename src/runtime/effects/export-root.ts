// Where bags are written, and how the ledger names them. The ledger, the run records, the events and later bags hold a
// locator below the folder of exports, never a host path: the folder can be moved, and its path is not disclosed.

import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { usageError } from '../../core/errors.js';

/** Limit of a locator: the length that an artifact reference can hold. */
const LOCATOR_CHARACTERS_MAX = 600;
const SEGMENT = /^[^/\\\0-\x1f\x7f-\x9f]+$/;

/** Whether a text is a path below a folder, with forward slashes and without a `..` that leads out of it. */
export const isLocator = (text: string): boolean =>
  text.length <= LOCATOR_CHARACTERS_MAX &&
  text.isWellFormed() &&
  text.split('/').every((segment) => SEGMENT.test(segment) && segment !== '.' && segment !== '..');

/**
 * The locator of a destination.
 * @param root the folder of exports; null if none is configured
 * @param destination a path below it: relative to it, or absolute
 * @throws UsageError for any other path
 */
export function locatorOf(root: string | null, destination: string): string {
  if (root === null) throw usageError('no folder of exports is configured: open the Turnpike with `exports`');
  const path = isAbsolute(destination) ? resolve(destination) : resolve(root, destination);
  const locator = relative(resolve(root), path).split(sep).join('/');
  if (isLocator(locator)) return locator;
  throw usageError(
    `${JSON.stringify(destination.slice(0, 200))} is not below the folder of exports, ${root}: name a path in it`,
  );
}

/**
 * The path of a locator.
 * @throws UsageError if there is no folder of exports, or the locator is invalid
 */
export function resolveLocator(root: string | null, locator: string): string {
  if (root !== null && isLocator(locator)) return join(resolve(root), locator);
  throw usageError(
    'the bundle has no place below the folder of exports: open the Turnpike with the same `exports` as before',
  );
}
