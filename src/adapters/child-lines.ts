// A child process that is talked to in lines. It is somebody else's program: it gets a clean environment, leads a
// process group of its own, and at the end the whole group is gone, whatever it started meanwhile.

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { NotExecuted } from '../errors.js';
import { LineBuffer } from './line-buffer.js';

/** How long it may take to end by itself, and once more after SIGTERM. */
const END_MS = 1_000;
/** After its end, how long what it wrote before is still waited for. */
const DRAIN_MS = 500;
/** What we have to say to it and it does not read. */
const UNREAD_BYTES_MAX = 4_194_304;
const LAST_WORDS_CHARS = 400;
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
  line(text: string): void;
  /** Once, when nothing can be said or heard any more. */
  ended(): void;
}

/** The environment of a child. @throws Error that names a variable which is asked for and not set */
export function environmentFor(names: readonly string[]): Record<string, string> {
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
  readonly #gone: Promise<void>;
  readonly #kill = (): void => this.#signal('SIGKILL');
  readonly #secrets: readonly string[];
  #over = false;
  #lastWords = '';

  private constructor(
    child: ChildProcessByStdio<Writable, Readable, Readable>,
    { env, lineBytesMax }: ChildOptions,
    to: LineListener,
  ) {
    const lines = new LineBuffer(lineBytesMax);
    this.#secrets = Object.keys(env).flatMap((name) => (ENVIRONMENT.includes(name) ? [] : (env[name] ?? [])));
    this.#child = child;
    this.#listener = to;
    child.stdout.on('data', (piece: Buffer) => this.#hear(lines, piece));
    child.stderr.on('data', (piece: Buffer) => {
      this.#lastWords = (this.#lastWords + piece.toString('utf8')).slice(-STDERR_CHARS);
    });
    // Writing to a child that is gone shows where it is written; there is nothing else to be done about it.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
    child.on('error', () => this.#end());
    this.#gone = new Promise((resolve) => {
      child.once('exit', () => {
        // Whatever it leaves behind in its group.
        this.#kill();
        notAtExit(this.#kill);
        setTimeout(() => this.#end(), DRAIN_MS).unref();
        resolve();
      });
    });
    child.once('close', () => this.#end());
    killAtExit(this.#kill);
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

  get open(): boolean {
    return !this.#over;
  }

  /** The end of what it wrote to stderr: for people, by nobody who is trusted, without what it was told in secret. */
  get lastWords(): string {
    const told = this.#secrets.filter((secret) => secret.length >= SECRET_CHARS_MIN);
    const longestFirst = told.sort((a, b) => b.length - a.length);
    const safe = longestFirst.reduce((words, secret) => words.replaceAll(secret, '[...]'), this.#lastWords);
    return safe.slice(-LAST_WORDS_CHARS).trim();
  }

  /**
   * Resolves when the system has taken the line.
   * @throws NotExecuted when it has not: a line that is cut off before its end is none for whoever reads lines
   */
  write(text: string): Promise<void> {
    const { stdin } = this.#child;
    if (this.#over || stdin.writableLength > UNREAD_BYTES_MAX) {
      if (!this.#over) this.abandon();
      return Promise.reject(new NotExecuted('the server does not read what it is sent'));
    }
    return new Promise((resolve, reject) => {
      stdin.write(`${text}\n`, (error) => {
        if (error) reject(new NotExecuted('the server has ended before it was asked'));
        else resolve();
      });
    });
  }

  /** Ends it at once. */
  abandon(): void {
    this.#kill();
    this.#end();
  }

  /** Lets it end by itself, then makes it. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    if (!(await this.#goneIn(END_MS))) {
      this.#signal('SIGTERM');
      if (!(await this.#goneIn(END_MS))) this.#kill();
    }
    this.#end();
  }

  #hear(lines: LineBuffer, piece: Buffer): void {
    if (this.#over) return;
    try {
      for (const line of lines.push(piece)) this.#listener.line(line);
    } catch {
      this.abandon();
    }
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy();
    this.#listener.ended();
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

  #goneIn(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve(false), ms);
      void this.#gone.then(() => {
        clearTimeout(late);
        resolve(true);
      });
    });
  }
}

/** What is left of children when this process ends without having closed them. */
const kills = new Set<() => void>();
const killAll = (): void => kills.forEach((kill) => kill());

function killAtExit(kill: () => void): void {
  if (kills.size === 0) process.on('exit', killAll);
  kills.add(kill);
}

function notAtExit(kill: () => void): void {
  kills.delete(kill);
  if (kills.size === 0) process.off('exit', killAll);
}
