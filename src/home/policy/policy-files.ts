import { lstat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  OPTIONAL_FILE_KEYS,
  OPTIONAL_FILES,
  type AnyPolicyFile,
  type OptionalFiles,
} from '../../core/contract/policy/pins.js';
import { PolicyError, usageError } from '../../core/errors.js';
import type { LoadedIdentities, LoadedPolicyFile, PolicySource } from '../../engine/ports/policy-sources.js';
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

/** Whether something is at the path, readable or not: only then it is read, so that what cannot be read is an error. */
export const isPresent = (dir: string, path: string): Promise<boolean> =>
  lstat(join(dir, path)).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT',
  );

/** The pin of a file, or why it has none. */
export type PinResult = LoadedPolicyFile['pin'];

/** The pins of a contract folder, as they are when they are opened. Paths are relative to the folder. */
export interface FolderPins {
  pinOf(path: string, bytes: Uint8Array): PinResult | Promise<PinResult>;
  /** Whether the version of a path is pinned: then a missing file must not lift what it forbids. */
  has(path: string): boolean | Promise<boolean>;
}

/**
 * Policies of the contract folder `dir` (`<dir>/policy/*.yaml`), whose pins each load opens anew.
 * @throws UsageError for an invalid file name in the options
 */
export function folderPolicySource(
  dir: string,
  openPins: (root: string) => Promise<FolderPins>,
  options: PolicySourceOptions,
): PolicySource {
  const root = resolve(dir);
  const paths = policyPaths(options);
  return {
    async load() {
      const pins = await openPins(root);
      const load = async (name: AnyPolicyFile): Promise<LoadedPolicyFile> => ({
        name,
        ...(await loadPinned(root, paths[name], pins)),
      });
      const [lanes, roles, actions] = await Promise.all([load('lanes'), load('roles'), load('actions')]);
      const optional: { -readonly [K in keyof OptionalFiles<LoadedPolicyFile>]: LoadedPolicyFile } = {};
      for (const name of OPTIONAL_FILE_KEYS) {
        const path = paths[name];
        if (await isPresent(root, path)) optional[name] = await load(name);
        else if (await pins.has(path)) throw unreadableError(join(root, path), 'is pinned, but missing');
      }
      return { lanes, roles, actions, ...optional };
    },
  };
}

/** One file of a contract folder, with its pin. @throws PolicyError as `load` does */
export async function loadPinned(root: string, path: string, pins: FolderPins): Promise<LoadedIdentities> {
  const bytes = await readPolicyFile(root, path);
  return { path: join(root, path), bytes, pin: await pins.pinOf(path, bytes) };
}

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
