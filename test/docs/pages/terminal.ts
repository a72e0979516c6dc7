// A terminal of a reader: a shell whose commands run one after another, with all of their output in one stream.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { MS_MAX } from '../programs.js';

export interface CommandEnd {
  readonly status: number;
  readonly output: string;
}

/** Ends the output of each command; no page has it. */
const END = '\u001eended ';

export class Terminal {
  readonly #shell: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  #output = '';
  #onOutput: () => void = () => undefined;

  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#shell = spawn('sh', [], { cwd, env, stdio: 'pipe' });
    this.#closed = once(this.#shell, 'close');
    this.#shell.stdin.on('error', () => undefined);
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        this.#output += chunk;
        this.#onOutput();
      });
    }
    this.#shell.on('close', () => this.#onOutput());
    this.#shell.stdin.write('exec 2>&1\n');
  }

  /** Runs a command to its end; the next one finds its exit code in `$?`. */
  async run(command: string): Promise<CommandEnd> {
    const begin = this.#output.length;
    this.#shell.stdin.write(
      `{ ${command}\n} </dev/null; status=$?; printf '${END}%s\\n' "$status"; (exit "$status")\n`,
    );
    const ended = await this.#seen(new RegExp(`^([^]*)${END}(\\d+)\\n$`), begin);
    return { status: Number(ended[2]), output: ended[1] ?? '' };
  }

  /** Puts a command in the place of the shell; resolves when its output is enough. */
  async start(command: string, isEnough: (output: string) => boolean): Promise<string> {
    const begin = this.#output.length;
    this.#shell.stdin.end(`exec ${command}\n`);
    await this.#until(() => isEnough(this.#output.slice(begin)), begin);
    return this.#output.slice(begin);
  }

  /** Interrupts the command in the place of the shell, as Ctrl+C does. */
  async interrupt(): Promise<CommandEnd> {
    const begin = this.#output.length;
    this.#shell.kill('SIGINT');
    await this.#closed;
    return { status: this.#shell.exitCode ?? -1, output: this.#output.slice(begin) };
  }

  async close(): Promise<void> {
    this.#shell.kill('SIGKILL');
    await this.#closed;
  }

  async #seen(pattern: RegExp, begin: number): Promise<RegExpExecArray> {
    let found: RegExpExecArray | null = null;
    await this.#until(() => (found = pattern.exec(this.#output.slice(begin))) !== null, begin);
    return found as unknown as RegExpExecArray;
  }

  /** Waits for output, or fails when none can come any more. */
  async #until(isTrue: () => boolean, begin: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`${why} after the output:\n${this.#output.slice(begin)}`));
      const late = setTimeout(() => fail(`nothing more within ${MS_MAX} ms`), MS_MAX);
      this.#onOutput = () => {
        const isClosed = this.#shell.exitCode !== null || this.#shell.signalCode !== null;
        if (!isTrue() && !isClosed) return;
        clearTimeout(late);
        if (isTrue()) resolve();
        else fail('the terminal was closed');
      };
      this.#onOutput();
    });
  }
}
