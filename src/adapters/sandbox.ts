// The sandbox on the host's file system: one directory per case below one root. Every access begins at an open
// descriptor, and goes from name to name (`sandbox-walk.ts`) or is proven afterwards (`sandbox-direct.ts`): what is
// outside, other cases included, does not exist for an agent.

import { lstatSync, mkdirSync, realpathSync, statfsSync } from 'node:fs';
import type { ActionName } from '../contract/actions.js';
import type { Effect, EffectResult, GatherRequest, SandboxFacts } from '../contract/effect.js';
import { SandboxError, UsageError } from '../errors.js';
import { requireCapability } from '../ports/capability.js';
import type { Sandbox } from '../ports/executor.js';
import { lookDirectly, readDirectly } from './sandbox-direct.js';
import { createDirectory, deleteFile, DIRECTORY_MODE, done, durably, failed, failedBy } from './sandbox-files.js';
import { listFiles, readFile, renameFile, UNKNOWN, writeFile, type CaseSandbox } from './sandbox-files.js';
import { settleDelete, settleDirectory, settleRename, settleWrite } from './sandbox-settle.js';
import { SandboxUsage } from './sandbox-usage.js';
import { anchoredFooting, causeOfError, enter, errnoOf, errorFact, factAt } from './sandbox-walk.js';
import type { Anchor, Footing, Held, Obstacle } from './sandbox-walk.js';
import { plainFooting } from './unsafe-sandbox.js';

/** Cases whose directory is kept open, with what is known of their usage; the least recently used one goes first. */
const CASES_OPEN_MAX = 256;
const CASE_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;
const PROC_SUPER_MAGIC = 0x9fa0;

type Act = (sandbox: CaseSandbox, effect: Effect) => EffectResult;
type Acts = Readonly<Record<string, Act>>;

const PERFORM: Acts = {
  READ_FILE: readFile,
  LIST_FILES: listFiles,
  WRITE_FILE: writeFile,
  CREATE_DIRECTORY: createDirectory,
  DELETE_FILE: deleteFile,
  RENAME_FILE: renameFile,
} satisfies Partial<Record<ActionName, Act>>;

/** A read changes nothing: it is settled by doing it again. */
const SETTLE: Acts = {
  READ_FILE: readFile,
  LIST_FILES: listFiles,
  WRITE_FILE: settleWrite,
  CREATE_DIRECTORY: settleDirectory,
  DELETE_FILE: settleDelete,
  RENAME_FILE: settleRename,
} satisfies Partial<Record<ActionName, Act>>;

/** Where the sandbox is, and what is allowed where it cannot be kept safe. */
export interface SandboxOptions {
  /** An existing directory of the host, which nobody else should write to. Each case gets `<root>/<case_id>/`. */
  readonly root: string;
  /** Allows plain path access where race-free access is not to be had (see `unsafe-sandbox.ts`). Default false. */
  readonly unsafe?: boolean;
}

/**
 * Opens the sandbox below `root`. One process at a time should use it: the quota account is kept in memory.
 * @throws SandboxError `UNSUPPORTED_PLATFORM` where there is no Linux /proc and `unsafe` is not set
 * @throws SandboxError `SANDBOX_UNUSABLE` if `root` is not a directory that can be opened
 */
export function openSandbox({ root, unsafe = false }: SandboxOptions): FileSandbox {
  const footing = chooseFooting(unsafe);
  let hostRoot: string;
  let held: Held;
  try {
    hostRoot = realpathSync(root);
    held = footing.hold(hostRoot);
  } catch (cause) {
    throw new SandboxError({ code: 'SANDBOX_UNUSABLE', message: `cannot open the sandbox directory ${root}`, cause });
  }
  if (!held.stats.isDirectory()) {
    footing.release(held);
    throw new SandboxError({ code: 'SANDBOX_UNUSABLE', message: `the sandbox ${root} is not a directory` });
  }
  return new FileSandbox({ footing, root: held }, hostRoot);
}

/** The `Sandbox` on files, made by `openSandbox`. Owns the descriptors of the root and of the cases in use. */
export class FileSandbox implements Sandbox {
  readonly #anchor: Anchor;
  readonly #hostRoot: string;
  readonly #cases = new Map<string, CaseSandbox>();
  #latest = '';
  #closed = false;

  constructor(anchor: Anchor, hostRoot: string) {
    this.#anchor = anchor;
    this.#hostRoot = hostRoot;
  }

  gather({ case_id, paths, usage, portable_names }: GatherRequest): SandboxFacts {
    const [path] = paths;
    if (!usage && paths.length === 1) {
      const fact = this.#directly(case_id, (sandbox) => lookDirectly(sandbox, path));
      if (fact !== null) return { paths: [fact], usage: null };
    }
    const sandbox = this.#open(case_id);
    if ('status' in sandbox) return { paths: paths.map(() => sandbox), usage: null };
    try {
      const measured = usage ? sandbox.usage.measure(sandbox) : null;
      return { paths: paths.map((path) => factAt(sandbox, path, portable_names)), usage: measured };
    } catch (error) {
      // Without the usage that was asked for, nothing may be decided.
      const fact = errorFact(causeOfError(error));
      return { paths: paths.map(() => fact), usage: null };
    }
  }

  perform(effect: Effect): EffectResult {
    requireCapability(effect);
    const case_id = caseOf(effect);
    if (effect.action === 'READ_FILE') {
      const read = this.#directly(case_id, (sandbox) => readDirectly(sandbox, effect));
      if (read !== null) return read;
    }
    const sandbox = this.#open(case_id);
    return 'status' in sandbox ? failedBy(sandbox) : act(PERFORM, sandbox, effect);
  }

  settle(effect: Effect): EffectResult {
    requireCapability(effect);
    const sandbox = this.#open(caseOf(effect));
    if ('status' in sandbox) return UNKNOWN;
    sandbox.usage.forget();
    return act(SETTLE, sandbox, effect);
  }

  forget(case_id: string): void {
    this.#cases.get(case_id)?.usage.forget();
  }

  /** Lets go of all directories. Any later use is a `UsageError`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const case_id of [...this.#cases.keys()]) this.#drop(case_id);
    this.#anchor.footing.release(this.#anchor.root);
  }

  /** What `use` finds without a look at the directory of the case, if that is kept open; else null. */
  #directly<T>(case_id: string, use: (sandbox: CaseSandbox) => T | null): T | null {
    const kept = this.#cases.get(case_id);
    const found = kept === undefined ? null : use(kept);
    if (kept !== undefined && found !== null) this.#touch(case_id, kept);
    return found;
  }

  /** Makes a case the one used last. */
  #touch(case_id: string, kept: CaseSandbox): void {
    if (case_id === this.#latest) return;
    this.#latest = case_id;
    this.#cases.delete(case_id);
    this.#cases.set(case_id, kept);
  }

  /** The directory of a case, made on its first use. */
  #open(case_id: string): CaseSandbox | Obstacle {
    // A closed descriptor's number may be somebody else's file by now.
    if (this.#closed) throw new UsageError({ code: 'USAGE', message: 'the sandbox was closed' });
    if (!CASE_ID.test(case_id)) return errorFact('INTERNAL');
    try {
      const kept = this.#cases.get(case_id);
      if (kept !== undefined && this.#isCurrent(kept, case_id)) {
        this.#touch(case_id, kept);
        return kept;
      }
      this.#drop(case_id);
      return this.#enter(case_id);
    } catch (error) {
      return errorFact(causeOfError(error));
    }
  }

  /** Did an operator remove the case, or put another directory in its place? Only compared, so no race matters. */
  #isCurrent({ root }: CaseSandbox, case_id: string): boolean {
    const stats = lstatSync(`${this.#hostRoot}/${case_id}`, { bigint: true, throwIfNoEntry: false });
    return stats?.ino === root.stats.ino && stats.dev === root.stats.dev;
  }

  #enter(case_id: string): CaseSandbox | Obstacle {
    const path = `${this.#anchor.root.path}/${case_id}`;
    let root = enter(this.#anchor, path);
    if ('status' in root && root.status === 'no_parent') {
      if (!isMade(this.#anchor.root, path)) return errorFact('IO_ERROR');
      root = enter(this.#anchor, path);
    }
    if ('status' in root) return root;
    const { footing } = this.#anchor;
    const home = footing.isAnchored ? `${this.#hostRoot}/${case_id}` : null;
    const sandbox = { footing, root, home, usage: new SandboxUsage() };
    this.#touch(case_id, sandbox);
    const [oldest] = this.#cases.keys();
    if (this.#cases.size > CASES_OPEN_MAX && oldest !== undefined) this.#drop(oldest);
    return sandbox;
  }

  #drop(case_id: string): void {
    const kept = this.#cases.get(case_id);
    if (kept === undefined) return;
    this.#cases.delete(case_id);
    if (case_id === this.#latest) this.#latest = '';
    kept.footing.release(kept.root);
  }
}

/** No case has an empty id, so what has no case opens nothing. */
const caseOf = ({ case_id }: Effect): string => case_id ?? '';

function act(acts: Acts, sandbox: CaseSandbox, effect: Effect): EffectResult {
  const chosen = Object.hasOwn(acts, effect.action) ? acts[effect.action] : undefined;
  if (chosen === undefined) return failed('INTERNAL');
  let certain = false;
  try {
    const result = chosen(sandbox, effect);
    certain = result.status !== 'unknown';
    return result;
  } finally {
    if (!certain) sandbox.usage.forget();
  }
}

function isMade(parent: Held, path: string): boolean {
  try {
    const made = durably(parent, () => {
      mkdirSync(path, DIRECTORY_MODE);
      return done({});
    });
    return made.status === 'done';
  } catch (error) {
    // Made by somebody else a moment ago: just as well.
    if (errnoOf(error) === 'EEXIST') return true;
    throw error;
  }
}

function chooseFooting(unsafe: boolean): Footing {
  if (process.platform === 'linux' && isProcfs('/proc')) return anchoredFooting;
  // Windows has neither O_NOFOLLOW nor an fsync of directories.
  if (unsafe && process.platform !== 'win32') return plainFooting;
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
