// The control: a sandbox as most file tools implement it. It resolves the real path, checks that it is inside, and then
// opens it (CVE-2018-15664, CVE-2025-53109). Without even that check, it validates the detector.

import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs';
import { unlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type {
  Effect,
  EffectResult,
  SandboxRequest,
  PathFact,
  SandboxFacts,
} from '../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';

const READ_BYTES_MAX = 1_048_576;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

export class NaiveSandbox implements Sandbox {
  readonly #root: string;
  readonly #checks: boolean;

  constructor(root: string, { checks = true } = {}) {
    this.#root = realpathSync(root);
    this.#checks = checks;
  }

  gather({ case_id, paths }: SandboxRequest): SandboxFacts {
    return { paths: paths.map((path) => this.#fact(case_id, path)), usage: { bytes: 0, files: 0 } };
  }

  perform({ action, args, case_id }: Effect): EffectResult {
    try {
      const at = (name: string): string => this.#real(case_id ?? '', text(args[name]));
      const result = act(action, args, at);
      return result === null ? { status: 'failed', cause: 'INTERNAL' } : { status: 'done', result };
    } catch {
      return { status: 'failed', cause: 'IO_ERROR' };
    }
  }

  settle(effect: Effect): EffectResult {
    const { content } = effect.args;
    if (effect.action !== 'WRITE_FILE') return { status: 'unknown' };
    const read = this.perform({ ...effect, action: 'READ_FILE' });
    return read.status === 'done' && read.result['content'] === content ? read : { status: 'unknown' };
  }

  #fact(case_id: string, path: string): PathFact {
    try {
      const real = this.#real(case_id, path);
      if (lstatSync(real, { throwIfNoEntry: false }) === undefined) return { status: 'absent' };
      const { ino, mtimeNs, size } = statSync(real, { bigint: true });
      const identity = { inode: String(ino), mtime_ns: String(mtimeNs) };
      if (statSync(real).isDirectory()) return { status: 'directory', ...identity };
      return { status: 'file', bytes: Number(size), ...identity };
    } catch {
      return { status: 'no_parent' };
    }
  }

  /** The real path. @throws if it is outside of the case */
  #real(case_id: string, path: string): string {
    const home = join(this.#root, case_id);
    const host = join(home, path.slice('/sandbox/'.length));
    if (!this.#checks) return host;
    const isThere = lstatSync(host, { throwIfNoEntry: false }) !== undefined;
    const real = isThere ? realpathSync(host) : join(realpathSync(dirname(host)), basename(host));
    if (real !== home && !real.startsWith(`${home}/`)) throw new Error('outside');
    // As such a tool does before it opens anything: a size limit, and no device.
    const stats = isThere ? statSync(real) : null;
    if (stats !== null && (stats.size > READ_BYTES_MAX || (!stats.isFile() && !stats.isDirectory()))) {
      throw new Error('unfit');
    }
    return real;
  }
}

/** @returns null for an action that it does not support */
function act(action: string, args: JsonObject, at: (name: string) => string): JsonObject | null {
  switch (action) {
    case 'READ_FILE':
      return { content: readFileSync(at('path'), 'utf8') };
    case 'LIST_FILES':
      return { entries: readdirSync(at('path')).map((name) => ({ name, type: 'file' })) };
    case 'WRITE_FILE':
      writeFileSync(at('path'), text(args['content']));
      return { bytes_written: Buffer.byteLength(text(args['content'])) };
    case 'CREATE_DIRECTORY':
      mkdirSync(at('path'));
      return {};
    case 'DELETE_FILE':
      unlinkSync(at('path'));
      return {};
    case 'RENAME_FILE':
      renameSync(at('source'), at('destination'));
      return {};
    default:
      return null;
  }
}
