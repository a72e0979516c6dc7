// The sandbox on the host's file system: one directory for each case, below one root. Every access starts from an open
// descriptor. It resolves one name at a time (`sandbox-walk.ts`) or verifies the result afterwards
// (`read-directly.ts`). Everything outside, other cases included, does not exist for an agent.

import { lstatSync, mkdirSync, realpathSync, statfsSync } from 'node:fs';
import type { FileActionName } from '../../core/contract/policy/catalogue.js';
import type { Effect, EffectResult, SandboxRequest, SandboxFacts } from '../../core/contract/run/effect.js';
import { SandboxError, usageError } from '../../core/errors.js';
import { requireCapability } from '../../engine/ports/effects/capability.js';
import type { Sandbox } from '../../engine/ports/effects/sandbox.js';
import { lookDirectly, readDirectly, readInspected, InspectedFiles } from './read-directly.js';
import {
  createDirectory,
  deleteFile,
  DIRECTORY_MODE,
  doneResult,
  changeDurably,
  failedResult,
  actionFailureOf,
  listFiles,
  readFile,
  renameFile,
  UNKNOWN_RESULT,
  writeFile,
  type CaseSandbox,
  SandboxUsage,
  OpenParents,
} from './sandbox-actions.js';
import { settleDelete, settleDirectory, settleRename, settleWrite } from './sandbox-settle.js';
import {
  descriptorAccess,
  causeOfError,
  openDirectory,
  errnoOf,
  errorFact,
  factAt,
  unsafeAccess,
} from './sandbox-walk.js';
import type { SandboxRoot, FileAccess, PathHandle, Obstacle } from './sandbox-walk.js';

/** Maximum number of open case directories with their cached usage; the least recently used one is closed first. */
const CASES_OPEN_MAX = 256;
const CASE_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;
const PROC_SUPER_MAGIC = 0x9fa0;

type ActionRunner = (sandbox: CaseSandbox, effect: Effect) => EffectResult;
type ActionRunners = Readonly<Record<string, ActionRunner>>;

const RUNNERS: ActionRunners = {
  READ_FILE: readFile,
  LIST_FILES: listFiles,
  WRITE_FILE: writeFile,
  CREATE_DIRECTORY: createDirectory,
  DELETE_FILE: deleteFile,
  RENAME_FILE: renameFile,
} satisfies Record<FileActionName, ActionRunner>;

/** A read changes nothing, so it is settled by reading again. */
const SETTLERS: ActionRunners = {
  READ_FILE: readFile,
  LIST_FILES: listFiles,
  WRITE_FILE: settleWrite,
  CREATE_DIRECTORY: settleDirectory,
  DELETE_FILE: settleDelete,
  RENAME_FILE: settleRename,
} satisfies Record<FileActionName, ActionRunner>;

/** Options of the sandbox. */
export interface SandboxOptions {
  /** An existing directory of the host. No other program should write to it. Each case gets `<root>/<case_id>/`. */
  readonly root: string;
  /** Allows plain path access if race-free access is unavailable (see `unsafeAccess`). Default false. */
  readonly unsafe?: boolean;
}

/**
 * Opens the sandbox below `root`. One process at a time should use it, because it caches the quota usage in memory.
 * @throws SandboxError `UNSUPPORTED_PLATFORM` without Linux /proc, unless `unsafe` is set
 * @throws SandboxError `SANDBOX_UNUSABLE` if `root` is not a directory that can be opened
 */
export function openSandbox({ root, unsafe = false }: SandboxOptions): FileSandbox {
  const access = chooseFileAccess(unsafe);
  let hostRoot: string;
  let rootHandle: PathHandle;
  try {
    hostRoot = realpathSync(root);
    rootHandle = access.openHandle(hostRoot);
  } catch (cause) {
    throw new SandboxError({ code: 'SANDBOX_UNUSABLE', message: `cannot open the sandbox directory ${root}`, cause });
  }
  if (!rootHandle.stats.isDirectory()) {
    access.release(rootHandle);
    throw new SandboxError({ code: 'SANDBOX_UNUSABLE', message: `the sandbox ${root} is not a directory` });
  }
  return new FileSandbox({ access, root: rootHandle }, hostRoot);
}

/** The `Sandbox` on files; `openSandbox` creates it. Owns the descriptors of the root and of the open cases. */
export class FileSandbox implements Sandbox {
  readonly #sandboxRoot: SandboxRoot;
  readonly #hostRoot: string;
  readonly #cases = new Map<string, CaseSandbox>();
  readonly #inspected = new InspectedFiles();
  #latest = '';
  #closed = false;

  constructor(sandboxRoot: SandboxRoot, hostRoot: string) {
    this.#sandboxRoot = sandboxRoot;
    this.#hostRoot = hostRoot;
  }

  gather({ case_id, paths, usage, portable_names }: SandboxRequest): SandboxFacts {
    const [path] = paths;
    if (!usage && path !== undefined && paths.length === 1) {
      const fact = this.#tryDirectly(case_id, (sandbox) =>
        lookDirectly(sandbox, path, (file) => this.#inspected.add(case_id, path, file)),
      );
      if (fact !== null) return { paths: [fact], usage: null };
    }
    const sandbox = this.#open(case_id);
    if ('status' in sandbox) return { paths: paths.map(() => sandbox), usage: null };
    try {
      const measured = usage ? sandbox.usage.measure(sandbox) : null;
      return { paths: paths.map((path) => factAt(sandbox, path, portable_names)), usage: measured };
    } catch (error) {
      // Without the requested usage, the engine must not decide.
      const fact = errorFact(causeOfError(error));
      return { paths: paths.map(() => fact), usage: null };
    }
  }

  perform(effect: Effect): EffectResult {
    requireCapability(effect);
    const case_id = caseOf(effect);
    if (effect.action === 'READ_FILE') {
      const file = this.#inspected.take(case_id, effect.args['path']);
      const read =
        (file === null ? null : readInspected(file, effect)) ??
        this.#tryDirectly(case_id, (sandbox) => readDirectly(sandbox, effect));
      if (read !== null) return read;
    }
    const sandbox = this.#open(case_id);
    return 'status' in sandbox ? actionFailureOf(sandbox) : runAction(RUNNERS, sandbox, effect);
  }

  settle(effect: Effect): EffectResult {
    requireCapability(effect);
    const sandbox = this.#open(caseOf(effect));
    if ('status' in sandbox) return UNKNOWN_RESULT;
    sandbox.usage.forget();
    return runAction(SETTLERS, sandbox, effect);
  }

  forget(case_id: string): void {
    this.#cases.get(case_id)?.usage.forget();
  }

  /** Closes all directories. Any later use throws a `UsageError`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#inspected.close();
    for (const case_id of [...this.#cases.keys()]) this.#drop(case_id);
    this.#sandboxRoot.access.release(this.#sandboxRoot.root);
  }

  /** The result of `use` on an open case, without checking that its directory is still in place; else null. */
  #tryDirectly<T>(case_id: string, use: (sandbox: CaseSandbox) => T | null): T | null {
    const cached = this.#cases.get(case_id);
    const found = cached === undefined ? null : use(cached);
    if (cached !== undefined && found !== null) this.#touch(case_id, cached);
    return found;
  }

  /** Marks a case as the most recently used one. */
  #touch(case_id: string, cached: CaseSandbox): void {
    if (case_id === this.#latest) return;
    this.#latest = case_id;
    this.#cases.delete(case_id);
    this.#cases.set(case_id, cached);
  }

  /** Opens the directory of a case; creates it on first use. */
  #open(case_id: string): CaseSandbox | Obstacle {
    // The number of a closed descriptor may refer to another file by now.
    if (this.#closed) throw usageError('the sandbox was closed');
    if (!CASE_ID.test(case_id)) return errorFact('INTERNAL');
    try {
      const cached = this.#cases.get(case_id);
      if (cached !== undefined && this.#isCurrent(cached, case_id)) {
        this.#touch(case_id, cached);
        return cached;
      }
      this.#drop(case_id);
      return this.#enter(case_id);
    } catch (error) {
      return errorFact(causeOfError(error));
    }
  }

  /** Whether this is still the directory of the case: an operator may have removed or replaced it. Only compared. */
  #isCurrent({ root }: CaseSandbox, case_id: string): boolean {
    const stats = lstatSync(`${this.#hostRoot}/${case_id}`, { bigint: true, throwIfNoEntry: false });
    return stats?.ino === root.stats.ino && stats.dev === root.stats.dev;
  }

  #enter(case_id: string): CaseSandbox | Obstacle {
    const path = `${this.#sandboxRoot.root.path}/${case_id}`;
    let root = openDirectory(this.#sandboxRoot, path);
    if ('status' in root && root.status === 'no_parent') {
      if (!tryMakeDirectory(this.#sandboxRoot.root, path)) return errorFact('IO_ERROR');
      root = openDirectory(this.#sandboxRoot, path);
    }
    if ('status' in root) return root;
    const { access } = this.#sandboxRoot;
    const hostPath = access.hasDescriptorPaths ? `${this.#hostRoot}/${case_id}` : null;
    const sandbox = { access, root, hostPath, usage: new SandboxUsage(), parents: new OpenParents() };
    this.#touch(case_id, sandbox);
    const [oldest] = this.#cases.keys();
    if (this.#cases.size > CASES_OPEN_MAX && oldest !== undefined) this.#drop(oldest);
    return sandbox;
  }

  #drop(case_id: string): void {
    const cached = this.#cases.get(case_id);
    if (cached === undefined) return;
    this.#cases.delete(case_id);
    if (case_id === this.#latest) this.#latest = '';
    cached.parents.close();
    cached.access.release(cached.root);
  }
}

/** No case has an empty id, so an effect without a case opens no directory. */
const caseOf = ({ case_id }: Effect): string => case_id ?? '';

function runAction(runners: ActionRunners, sandbox: CaseSandbox, effect: Effect): EffectResult {
  const chosen = Object.hasOwn(runners, effect.action) ? runners[effect.action] : undefined;
  if (chosen === undefined) return failedResult('INTERNAL');
  let certain = false;
  try {
    const result = chosen(sandbox, effect);
    certain = result.status !== 'unknown';
    return result;
  } finally {
    if (!certain) sandbox.usage.forget();
  }
}

function tryMakeDirectory(parent: PathHandle, path: string): boolean {
  try {
    const made = changeDurably(parent, () => {
      mkdirSync(path, DIRECTORY_MODE);
      return doneResult({});
    });
    return made.status === 'done';
  } catch (error) {
    // Another process created it in the meantime, which is as good.
    if (errnoOf(error) === 'EEXIST') return true;
    throw error;
  }
}

function chooseFileAccess(unsafe: boolean): FileAccess {
  if (process.platform === 'linux' && isProcfs('/proc')) return descriptorAccess;
  // Windows has neither O_NOFOLLOW nor an fsync of directories.
  if (unsafe && process.platform !== 'win32') return unsafeAccess;
  throw new SandboxError({
    code: 'UNSUPPORTED_PLATFORM',
    message:
      'files can be kept apart without races on Linux with /proc only: run there (in a container, mount /proc), ' +
      'or allow `unsafe: true` for development on macOS, where the sandbox can be escaped by renaming directories',
  });
}

function isProcfs(path: string): boolean {
  try {
    return statfsSync(path).type === PROC_SUPER_MAGIC;
  } catch {
    return false;
  }
}
