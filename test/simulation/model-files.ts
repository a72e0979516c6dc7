// The files of all cases, in memory: the part of a sandbox that the contract of the port describes.

import type { Effect, EffectResult, PathFact } from '../../src/core/contract/run/effect.js';
import type { ExecutionCause } from '../../src/core/contract/fault.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { Random } from './random.js';

interface Node {
  readonly directory: boolean;
  readonly content: string;
  readonly inode: string;
  readonly mtime_ns: string;
}

const ROOT = '/sandbox';
const NAMES = ['a.txt', 'b.txt', 'c.md', 'd', 'd/e.txt'];

const done = (result: JsonObject): EffectResult => ({ status: 'done', result });
const failed = (cause: ExecutionCause): EffectResult => ({ status: 'failed', cause });
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const trimmed = (path: unknown): string => textOf(path).replace(/\/$/, '');

export class ModelFiles {
  readonly #cases = new Map<string, Map<string, Node>>();
  /** Inodes and times of change: never the same twice. */
  #stamp = 0;

  fact(case_id: string, path: string): PathFact {
    const files = this.#files(case_id);
    const at = trimmed(path);
    const node = files.get(at);
    if (node === undefined) {
      const parent = files.get(parentOf(at));
      if (parent === undefined) return { status: 'no_parent' };
      return { status: parent.directory ? 'absent' : 'not_a_directory' };
    }
    const { inode, mtime_ns } = node;
    return node.directory
      ? { status: 'directory', inode, mtime_ns }
      : { status: 'file', bytes: Buffer.byteLength(node.content), inode, mtime_ns };
  }

  usage(case_id: string): { readonly bytes: number; readonly files: number } {
    const nodes = [...this.#files(case_id).values()];
    return { bytes: nodes.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0), files: nodes.length - 1 };
  }

  /** Executes an effect, and checks again at the time of use. `failed` has changed nothing. */
  act({ action, args, case_id }: Effect): EffectResult {
    const files = this.#files(case_id ?? '');
    const at = trimmed(args['path'] ?? args['source']);
    const node = files.get(at);
    switch (action) {
      case 'READ_FILE':
        if (node?.directory === true) return failed('IS_A_DIRECTORY');
        return node === undefined ? failed('FILE_NOT_FOUND') : done({ content: node.content });
      case 'LIST_FILES':
        if (node === undefined) return failed('FILE_NOT_FOUND');
        return node.directory ? done({ entries: namesBelow(files, at) }) : failed('NOT_A_DIRECTORY');
      case 'WRITE_FILE':
        if (node?.directory === true) return failed('IS_A_DIRECTORY');
        if (files.get(parentOf(at))?.directory !== true) return failed('FILE_NOT_FOUND');
        this.#put(files, at, { directory: false, content: textOf(args['content']) });
        return done({ bytes_written: Buffer.byteLength(textOf(args['content'])) });
      case 'CREATE_DIRECTORY':
        if (node !== undefined) return failed('ALREADY_EXISTS');
        if (files.get(parentOf(at))?.directory !== true) return failed('FILE_NOT_FOUND');
        this.#put(files, at, { directory: true, content: '' });
        return done({});
      case 'DELETE_FILE':
        if (node?.directory === true) return failed('IS_A_DIRECTORY');
        return files.delete(at) ? done({}) : failed('FILE_NOT_FOUND');
      case 'RENAME_FILE':
        return this.#rename(files, at, trimmed(args['destination']));
      default:
        return failed('INTERNAL');
    }
  }

  /** Another program writes or removes a file. @returns the path */
  interfere(case_id: string, random: Random): string {
    const files = this.#files(case_id);
    const at = `${ROOT}/${random.pick(NAMES)}`;
    for (const path of [...files.keys()]) if (path === at || path.startsWith(`${at}/`)) files.delete(path);
    if (files.get(parentOf(at))?.directory === true && random.chance(0.6)) {
      this.#put(files, at, { directory: random.chance(0.3), content: `from outside ${this.#stamp}` });
    }
    return `${case_id} ${at}`;
  }

  #rename(files: Map<string, Node>, from: string, to: string): EffectResult {
    const node = files.get(from);
    if (node === undefined) return failed('FILE_NOT_FOUND');
    if (node.directory) return failed('IS_A_DIRECTORY');
    if (files.has(to)) return failed('ALREADY_EXISTS');
    if (files.get(parentOf(to))?.directory !== true) return failed('FILE_NOT_FOUND');
    files.delete(from);
    files.set(to, node);
    return done({});
  }

  #put(files: Map<string, Node>, path: string, node: Pick<Node, 'directory' | 'content'>): void {
    this.#stamp += 1;
    const stamp = String(this.#stamp);
    files.set(path, { ...node, inode: files.get(path)?.inode ?? stamp, mtime_ns: stamp });
  }

  #files(case_id: string): Map<string, Node> {
    const root: Node = { directory: true, content: '', inode: '0', mtime_ns: '0' };
    const known = this.#cases.get(case_id) ?? new Map([[ROOT, root]]);
    this.#cases.set(case_id, known);
    return known;
  }
}

const namesBelow = (files: ReadonlyMap<string, Node>, at: string) =>
  [...files]
    .filter(([path]) => parentOf(path) === at)
    .map(([path, { directory }]) => ({ name: path.slice(at.length + 1), type: directory ? 'directory' : 'file' }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
