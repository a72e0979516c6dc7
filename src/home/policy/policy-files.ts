import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  OPTIONAL_FILE_KEYS,
  OPTIONAL_FILES,
  type AnyPolicyFile,
  type OptionalFiles,
} from '../../core/contract/policy/pins.js';
import { PolicyError, usageError } from '../../core/errors.js';
import { NotAFile, openRegular } from '../../system/files/open-file.js';

/** Largest policy file, in bytes. The policy loader has the same limit; here it prevents reading a larger file. */
export const POLICY_BYTES_MAX = 1_048_576;

export interface PolicySourceOptions {
  /** The name of the actions policy in the policy folder; default `actions.yaml` (D20). */
  readonly actions?: string;
}

/** The paths of the policy files in a contract folder, with forward slashes. @throws UsageError */
export function policyPaths({
  actions = 'actions.yaml',
}: PolicySourceOptions): Readonly<Record<AnyPolicyFile, string>> {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/u.test(actions)) {
    const message = `the actions policy must be a file name in the policy folder, not ${JSON.stringify(actions)}`;
    throw usageError(message);
  }
  return {
    lanes: 'policy/lanes.yaml',
    roles: 'policy/roles.yaml',
    actions: `policy/${actions}`,
    conditions: `policy/${OPTIONAL_FILES.conditions}`,
    counters: `policy/${OPTIONAL_FILES.counters}`,
  };
}

/** Whether something is at the path: only then it is read, so that what cannot be read is an error. */
const isPresent = (dir: string, path: string): Promise<boolean> =>
  lstat(join(dir, path)).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT',
  );

/**
 * Loads the optional files that are present.
 * @param isPinned whether the version of a path is pinned: then a missing file must not lift what it forbids
 * @throws PolicyError POLICY_UNREADABLE if a pinned file is missing
 */
export async function loadOptional<T>(
  root: string,
  paths: Readonly<Record<AnyPolicyFile, string>>,
  load: (name: AnyPolicyFile) => Promise<T>,
  isPinned: (path: string) => boolean | Promise<boolean>,
): Promise<OptionalFiles<T>> {
  const files: { -readonly [K in keyof OptionalFiles<T>]: OptionalFiles<T>[K] } = {};
  for (const name of OPTIONAL_FILE_KEYS) {
    if (await isPresent(root, paths[name])) files[name] = await load(name);
    else if (await isPinned(paths[name])) throw missingError(root, paths[name]);
  }
  return files;
}

/** The error for a file whose version is pinned, and which is missing. */
const missingError = (dir: string, path: string): PolicyError =>
  unreadableError(join(dir, path), 'is pinned, but missing');

/** Reads a file below `dir`. @throws PolicyError POLICY_UNREADABLE, also if it is not a regular file */
export async function readPolicyFile(dir: string, path: string): Promise<Uint8Array> {
  const full = join(dir, path);
  try {
    const handle = await openRegular(full);
    try {
      const stat = await handle.stat();
      if (stat.size > POLICY_BYTES_MAX) throw unreadableError(full, `is larger than ${POLICY_BYTES_MAX} bytes`);
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (cause instanceof NotAFile) throw unreadableError(full, 'is not a file', cause);
    throw cause instanceof PolicyError ? cause : unreadableError(full, 'cannot be read', cause);
  }
}

const unreadableError = (path: string, why: string, cause?: unknown): PolicyError =>
  new PolicyError({ code: 'POLICY_UNREADABLE', message: `${path} ${why}`, cause });
