// Victim processes: starts them, reads their output, kills them and waits for them.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { interpreter } from './interpreter.js';
import type { Said } from './workload.js';

/** The longest time that a victim takes on a busy machine. */
const MS_MAX = 60_000;

export interface Ended {
  readonly said: readonly Said[];
  readonly status: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

export class Victim {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  #text = '';
  #stderr = '';

  /** Runs `program` in a new process, from a shell that runs `first` before it. */
  constructor(program: string, argv: readonly string[], first = '') {
    const command = [process.execPath, program, ...argv, '--interpreter', interpreter];
    const args = ['-c', `${first} exec "$@"`, 'sh', ...command];
    this.#child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.#text += chunk.toString('utf8')));
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString('utf8')));
    const late = setTimeout(() => this.kill(), MS_MAX);
    this.ended = once(this.#child, 'close').then((how) => {
      clearTimeout(late);
      const [status, signal] = how as [number | null, string | null];
      return { said: this.said, status, signal, stderr: this.#stderr };
    });
  }

  /** The lines that it has printed so far; an incomplete line does not count. */
  get said(): readonly Said[] {
    return this.#text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Said);
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#child.kill(signal);
  }

  /** Resolves when it has printed this many lines, or has ended. */
  async lines(count: number): Promise<void> {
    const over = this.ended.then(() => true);
    while (this.said.length < count) {
      const more = once(this.#child.stdout ?? this.#child, 'data').then(() => false);
      if (await Promise.race([more, over])) return;
    }
  }

  /** Resolves when a signal has stopped it, or when it has ended. */
  async stopped(): Promise<boolean> {
    for (;;) {
      const state = stateOf(this.#child.pid ?? 0);
      if (state === 'T') return true;
      if (state === '' || state === 'Z') return false;
      await pause(5);
    }
  }
}

/** The state of a process as the system reports it, e.g. `T` for stopped. */
function stateOf(pid: number): string {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
}
