import { constants, lstatSync, openSync } from 'node:fs';
import type { FileAccess } from './sandbox-walk.js';

/**
 * Plain paths instead of descriptors, for development without /proc (macOS). Every check is made, but the checked
 * object can be replaced afterwards: a program that renames directories in the sandbox can redirect an action to
 * another place (CVE-2018-15664). Needs a case-sensitive file system; otherwise two cases may share one directory.
 */
export const unsafeAccess: FileAccess = {
  hasDescriptorPaths: false,
  openHandle: (path) => ({ path, fd: -1, stats: lstatSync(path, { bigint: true }) }),
  release: () => undefined,
  reopen: ({ path }) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW),
  isNamedAt: () => true,
};
