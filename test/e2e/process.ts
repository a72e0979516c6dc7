// A command as a shell runs it: a real process, its output, and how it ends.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../sources.js';

const children = new Set<ChildProcessWithoutNullStreams>();

/** Ends processes that a test has left. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
}

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const PROGRAM = join(ROOT, 'dist/src/interfaces/cli/main.js');

/** A process of the command, and its output. */
export class Command {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';

  /**
   * @param env variables besides PATH
   * @param program of this checkout, or of an installed package
   */
  constructor(argv: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}, program = PROGRAM) {
    this.child = spawn(process.execPath, [program, ...argv], {
      cwd,
      env: { PATH: process.env['PATH'], ...env },
    });
    children.add(this.child);
    this.child.stdin.end();
    this.child.stdout.on('data', (chunk: Buffer) => (this.#stdout += chunk.toString()));
    this.child.stderr.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.ended = once(this.child, 'close').then(([status]) => {
      children.delete(this.child);
      return { status: status as number | null, stdout: this.#stdout, stderr: this.#stderr };
    });
  }

  /** Resolves with the match of `pattern` on stderr. @throws if the process ends before */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    const early = this.ended.then((ended) => Promise.reject(new Error(`ended early: ${JSON.stringify(ended)}`)));
    early.catch(() => undefined);
    for (;;) {
      const found = pattern.exec(this.#stderr);
      if (found !== null) return found;
      await Promise.race([once(this.child.stderr, 'data'), early]);
    }
  }

  kill(): Promise<Ended> {
    this.child.kill('SIGKILL');
    return this.ended;
  }

  stop(): Promise<Ended> {
    this.child.kill('SIGTERM');
    return this.ended;
  }
}
