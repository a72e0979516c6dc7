// A child process that is talked to in lines. It is somebody else's program: it gets a clean environment, leads a
// process group of its own, and at the end the whole group is gone, whatever it started meanwhile.

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { ActionNotExecutedError } from '../../errors.js';
import { LineBuffer } from './line-buffer.js';

/** How long it may take to end by itself, and once more after SIGTERM. */
const END_MS = 1_000;
/** After its end, how long what it wrote before is still waited for. */
const DRAIN_MS = 500;
/** What we have to say to it and it does not read. */
const UNREAD_BYTES_MAX = 4_194_304;
const STDERR_TAIL_CHARS = 400;
/** More is held than is told, so that a secret that is cut off at the beginning is not told either. */
const STDERR_CHARS = 16_384;
/** A `1` or a `yes` that was named for a child is no secret. */
const SECRET_CHARS_MIN = 6;

/** What every child gets of our environment; anything else has to be named. */
const ENVIRONMENT = ['PATH', 'HOME', 'LANG'];

export interface ChildOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly lineBytesMax: number;
}

export interface LineListener {
  onLine(text: string): void;
  /** Once, when nothing can be said or heard any more. */
  onEnd(): void;
}

/** The environment of a child. @throws Error that names a variable which is asked for and not set */
export function childEnvironment(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ENVIRONMENT) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  for (const name of names) {
    const value = process.env[name];
    if (value === undefined) throw new Error(`the environment variable ${name} is not set`);
    env[name] = value;
  }
  return env;
}

export class ChildLines {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #listener: LineListener;
  readonly #exited: Promise<void>;
  readonly #kill = (): void => this.#signal('SIGKILL');
  readonly #secrets: readonly string[];
  #isEnded = false;
  #stderr = '';

  private constructor(
    child: ChildProcessByStdio<Writable, Readable, Readable>,
    { env, lineBytesMax }: ChildOptions,
    listener: LineListener,
  ) {
    const lines = new LineBuffer(lineBytesMax);
    this.#secrets = Object.keys(env).flatMap((name) => (ENVIRONMENT.includes(name) ? [] : (env[name] ?? [])));
    this.#child = child;
    this.#listener = listener;
    child.stdout.on('data', (piece: Buffer) => this.#receive(lines, piece));
    child.stderr.on('data', (piece: Buffer) => {
      this.#stderr = (this.#stderr + piece.toString('utf8')).slice(-STDERR_CHARS);
    });
    // Writing to a child that is gone shows where it is written; there is nothing else to be done about it.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
    child.on('error', () => this.#end());
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        // Whatever it leaves behind in its group.
        this.#kill();
        removeExitKill(this.#kill);
        setTimeout(() => this.#end(), DRAIN_MS).unref();
        resolve();
      });
    });
    child.once('close', () => this.#end());
    addExitKill(this.#kill);
  }

  /** Starts the program. @throws when there is none, or it may not be run */
  static async start(options: ChildOptions, listener: LineListener): Promise<ChildLines> {
    const { argv, cwd, env } = options;
    const [command = '', ...args] = argv;
    const child = spawn(command, args, { cwd, env, detached: true, shell: false, stdio: ['pipe', 'pipe', 'pipe'] });
    const failed = new Promise<never>((_resolve, reject) => {
      child.once('error', reject);
    });
    failed.catch(() => undefined);
    // Where it could not be started, it may have no streams at all.
    return child.pid === undefined ? failed : new ChildLines(child, options, listener);
  }

  get isOpen(): boolean {
    return !this.#isEnded;
  }

  /** The end of what it wrote to stderr: for people, by nobody who is trusted, without what it was told in secret. */
  get stderrTail(): string {
    const secrets = this.#secrets.filter((secret) => secret.length >= SECRET_CHARS_MIN);
    const longestFirst = secrets.sort((a, b) => b.length - a.length);
    const safe = longestFirst.reduce((words, secret) => words.replaceAll(secret, '[...]'), this.#stderr);
    return safe.slice(-STDERR_TAIL_CHARS).trim();
  }

  /**
   * Resolves when the system has taken the line.
   * @throws NotExecuted when it has not: a line that is cut off before its end is none for whoever reads lines
   */
  write(text: string): Promise<void> {
    const { stdin } = this.#child;
    if (this.#isEnded || stdin.writableLength > UNREAD_BYTES_MAX) {
      if (!this.#isEnded) this.terminate();
      return Promise.reject(new ActionNotExecutedError('the server does not read what it is sent'));
    }
    return new Promise((resolve, reject) => {
      stdin.write(`${text}\n`, (error) => {
        if (error) reject(new ActionNotExecutedError('the server has ended before it was asked'));
        else resolve();
      });
    });
  }

  /** Ends it at once. */
  terminate(): void {
    this.#kill();
    this.#end();
  }

  /** Lets it end by itself, then makes it. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    if (!(await this.#hasExitedWithin(END_MS))) {
      this.#signal('SIGTERM');
      if (!(await this.#hasExitedWithin(END_MS))) this.#kill();
    }
    this.#end();
  }

  #receive(lines: LineBuffer, piece: Buffer): void {
    if (this.#isEnded) return;
    try {
      for (const line of lines.push(piece)) this.#listener.onLine(line);
    } catch {
      this.terminate();
    }
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy();
    this.#listener.onEnd();
  }

  /** To the group that it leads, so that what it has started hears it too. */
  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // There is nobody left, or a platform without groups.
      this.#child.kill(signal);
    }
  }

  #hasExitedWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      void this.#exited.then(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }
}

/** What is left of children when this process ends without having closed them. */
const exitKills = new Set<() => void>();
const killAll = (): void => exitKills.forEach((kill) => kill());

function addExitKill(kill: () => void): void {
  if (exitKills.size === 0) process.on('exit', killAll);
  exitKills.add(kill);
}

function removeExitKill(kill: () => void): void {
  exitKills.delete(kill);
  if (exitKills.size === 0) process.off('exit', killAll);
}
