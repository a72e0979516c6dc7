// Workers of other versions of the program, each in a process of its own.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { ROOT } from '../../root.js';
import type { LedgerPlace } from './postgres-harness.js';

/** Where each export of a version is. */
const FILES: Readonly<Record<string, string>> = {
  openTurnpike: './src/index.ts',
  createPostgresStore: './src/stores/postgres/index.ts',
  openPostgresStore: './src/stores/postgres/index.ts',
  openPostgresCluster: './src/stores/postgres/cluster/postgres-cluster.ts',
  FLAGS: './machines/flags.ts',
};

/**
 * Builds the worker of the sources in a folder, with these exports of theirs.
 * @param to where the program goes; the code looks for the files of its package from there
 * @returns the program
 */
export async function buildVersion(sources: string, exports: readonly string[], to = 'build/src'): Promise<string> {
  await build({
    absWorkingDir: sources,
    stdin: {
      contents: exports.map((name) => `export { ${name} } from '${FILES[name] ?? ''}';`).join('\n'),
      resolveDir: sources,
      loader: 'ts',
    },
    // The code looks for the package's files from the folder that contains `src`.
    outfile: join(sources, to, 'worker-parts.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
  const program = join(sources, to, 'version-worker.mjs');
  copyFileSync(join(ROOT, 'test/stores/postgres/version-worker.mjs'), program);
  return program;
}

export interface VersionOptions {
  /** It joins the ledger, which exists. */
  readonly joins?: boolean;
  /** The address that a worker of a later version reports. */
  readonly later?: string;
}

/** A worker of another version, in a process of its own. */
export class VersionWorker {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string, undefined>;

  constructor(program: string, { url, schema, folder }: LedgerPlace, options: VersionOptions = {}) {
    this.child = spawn(process.execPath, [program, JSON.stringify({ url, schema, folder, ...options })]);
    this.child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async next(): Promise<unknown> {
    const line = await this.#lines.next();
    if (line.done === true) throw new Error('the worker of another version has ended');
    return JSON.parse(line.value) as unknown;
  }

  ask(command: object): Promise<unknown> {
    this.child.stdin.write(`${JSON.stringify(command)}\n`);
    return this.next();
  }

  async end(): Promise<void> {
    const exit = once(this.child, 'exit');
    this.child.stdin.end();
    await exit;
  }

  async kill(): Promise<void> {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}
