// The path vectors of libpathrs (the library that runc uses for paths), resolved in a case sandbox. Our resolution must
// never be looser than the kernel's openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import type { PathFact } from '../../../src/core/contract/run/effect.js';
import { factOf, run, skip, testDirectory } from './sandbox-harness.js';

interface Entry {
  readonly path: string;
  readonly type: 'dir' | 'file' | 'symlink' | 'fifo' | 'sock';
  readonly target?: string;
}
interface Vectors {
  readonly trees: Readonly<Record<string, readonly Entry[]>>;
  readonly resolve: readonly {
    readonly name: string;
    readonly path: string;
    readonly ok: boolean;
    readonly expect: string;
  }[];
  readonly ops: readonly { readonly name: string; readonly args: string }[];
}

const SUITES = process.env['TURNPIKE_SUITES'] ?? fileURLToPath(new URL('../../../../shared/suites', import.meta.url));
const FILE = join(SUITES, 'libpathrs/vectors.json');
const vectors = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Vectors) : null;

const directory = testDirectory();
const sockets: Server[] = [];
let sandbox: FileSandbox;

beforeAll(async () => {
  for (const [tree, entries] of Object.entries(vectors?.trees ?? {})) await build(join(directory.root, tree), entries);
  mkdirSync(directory.root, { recursive: true });
  sandbox = openSandbox({ root: directory.root });
});
afterAll(() => {
  sandbox.close();
  for (const socket of sockets) socket.close();
  directory.remove();
});

async function build(root: string, entries: readonly Entry[]): Promise<void> {
  for (const { path, type, target } of entries) {
    const full = join(root, path);
    mkdirSync(type === 'dir' ? full : dirname(full), { recursive: true });
    if (type === 'file') writeFileSync(full, 'data');
    if (type === 'symlink') symlinkSync(target ?? '', full);
    if (type === 'fifo') expect(run('mkfifo', full)).toBe(true);
    if (type === 'sock') {
      const socket = createServer();
      sockets.push(socket);
      await new Promise<void>((resolve) => socket.listen(full, resolve));
    }
  }
}

const isCanonical = (path: string): boolean =>
  path
    .replace(/\/$/, '')
    .split('/')
    .every((segment) => !['', '.', '..'].includes(segment));

/** The expected result from the tree's own data, without a file system. */
function expectedFacts(tree: string, path: string): readonly string[] {
  const types = new Map<string, Entry['type']>();
  for (const entry of vectors?.trees[tree] ?? []) {
    for (let parent = dirname(entry.path); parent !== '.'; parent = dirname(parent)) types.set(parent, 'dir');
    types.set(entry.path, entry.type);
  }
  const segments = path.replace(/\/$/, '').split('/');
  for (let depth = 1; depth <= segments.length; depth += 1) {
    const isLast = depth === segments.length;
    const type = types.get(segments.slice(0, depth).join('/'));
    if (type === undefined) return [isLast ? 'absent' : 'no_parent'];
    if (type === 'symlink' || type === 'fifo' || type === 'sock')
      return [`refused ${type === 'sock' ? 'socket' : type}`];
    if (type === 'file' && (!isLast || path.endsWith('/'))) return ['not_a_directory'];
    if (isLast) return [type === 'dir' ? 'directory' : 'file'];
  }
  return [];
}

const shown = (fact: PathFact): string => (fact.status === 'refused' ? `refused ${fact.kind}` : fact.status);

describe('libpathrs', () => {
  test('S0-47 S0-49: a path resolves to a member of the tree, or not at all', () => {
    if (vectors === null) {
      skip(`no ${FILE}`);
      return;
    }
    const quoted = vectors.ops.flatMap(({ args }) => [...args.matchAll(/"([^"]*)"/g)].map(([, path]) => path ?? ''));
    const named = vectors.resolve.filter(({ name }) => !name.startsWith('proc_')).map(({ path }) => path);
    let checked = 0;
    for (const [tree, entries] of Object.entries(vectors.trees)) {
      const stored = entries.flatMap(({ path }) => [path, `${path}/`, `${path}/below`, `${path}/below/that`]);
      for (const path of new Set([...stored, ...named, ...quoted])) {
        const fact = factOf(sandbox, `/sandbox/${path}`, { case_id: tree });
        if (path === '') expect(fact).toMatchObject({ status: 'directory' });
        else if (isCanonical(path)) expect([path, [shown(fact)]]).toEqual([path, expectedFacts(tree, path)]);
        else expect([path, fact]).toEqual([path, { status: 'error', cause: 'INTERNAL' }]);
        checked += isCanonical(path) ? 1 : 0;
      }
    }
    expect(checked).toBeGreaterThan(700);
  });

  test('S0-49: no path resolves that the vectors refuse, or that they resolve elsewhere', () => {
    if (vectors === null) {
      skip(`no ${FILE}`);
      return;
    }
    let resolved = 0;
    for (const vector of vectors.resolve) {
      if (vector.name.startsWith('proc_')) continue;
      const { status } = factOf(sandbox, `/sandbox/${vector.path}`, { case_id: 'create_basic_tree' });
      if (status !== 'file' && status !== 'directory') continue;
      resolved += 1;
      const [, target = '', mode = ''] = /^\("([^"]*)", libc::(\w+)\)$/.exec(vector.expect) ?? [];
      expect(vector).toMatchObject({ ok: true });
      expect(target.replace(/^\//, '')).toBe(vector.path.replace(/\/$/, ''));
      expect(mode).toBe(status === 'file' ? 'S_IFREG' : 'S_IFDIR');
    }
    expect(resolved).toBeGreaterThan(5);
  });
});
