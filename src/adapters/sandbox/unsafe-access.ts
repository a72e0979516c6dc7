import { constants, lstatSync, openSync } from 'node:fs';
import type { FileAccess } from './sandbox-walk.js';

/**
 * Plain paths instead of descriptors, for development where there is no /proc (macOS). Every check is made, but
 * nothing keeps the checked thing in its place: whoever can rename things in the sandbox from outside can lead an
 * action astray (CVE-2018-15664). Needs a case-sensitive file system, or two cases may share one directory.
 */
export const unsafeAccess: FileAccess = {
  hasDescriptorPaths: false,
  openHandle: (path) => ({ path, fd: -1, stats: lstatSync(path, { bigint: true }) }),
  release: () => undefined,
  reopen: ({ path }) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW),
  isNamedAt: () => true,
};
