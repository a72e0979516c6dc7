// A child process that exchanges lines with us. It is a foreign program: it gets a clean environment and leads its own
// process group, and at the end the whole group is killed.

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { ActionNotExecutedError } from '../../../core/errors.js';

/** How long the child may take to exit by itself, and again after SIGTERM, in ms. */
const END_MS = 1_000;
/** How long we wait for its remaining output after its exit, in ms. */
const DRAIN_MS = 500;
/** Limit of data that the child has not read yet. */
const UNREAD_BYTES_MAX = 4_194_304;
const STDERR_TAIL_CHARS = 400;
/** More is buffered than shown, so that a secret that is truncated at the start of the buffer is not shown either. */
const STDERR_CHARS = 16_384;
/** Shorter values, such as `1` or `yes`, are not treated as secrets. */
const SECRET_CHARS_MIN = 6;

/** Environment variables that every child gets; others must be named. */
const ENVIRONMENT = ['PATH', 'HOME', 'LANG'];

interface ChildOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly lineBytesMax: number;
}

export interface LineListener {
  onLine(text: string): void;
  /** Called once, when the child can neither send nor receive any more. */
  onEnd(): void;
}

/** The environment of a child. @throws Error that names a requested variable which is not set */
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
    // The caller of `send` sees that the child is gone; the errors of the streams need no other handling.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
    child.on('error', () => this.#end());
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        // Kills what is left of its process group.
        this.#kill();
        removeExitKill(this.#kill);
        setTimeout(() => this.#end(), DRAIN_MS).unref();
        resolve();
      });
    });
    child.once('close', () => this.#end());
    addExitKill(this.#kill);
  }

  /** Starts the program. @throws if it does not exist or cannot be executed */
  static async start(options: ChildOptions, listener: LineListener): Promise<ChildLines> {
    const { argv, cwd, env } = options;
    const [command = '', ...args] = argv;
    const child = spawn(command, args, { cwd, env, detached: true, shell: false, stdio: ['pipe', 'pipe', 'pipe'] });
    const failed = new Promise<never>((_resolve, reject) => {
      child.once('error', reject);
    });
    failed.catch(() => undefined);
    // After a failed start the child may have no streams at all.
    return child.pid === undefined ? failed : new ChildLines(child, options, listener);
  }

  get isOpen(): boolean {
    return !this.#isEnded;
  }

  /** The end of its stderr, for people: untrusted text, without the secrets that the child got. */
  get stderrTail(): string {
    const secrets = this.#secrets.filter((secret) => secret.length >= SECRET_CHARS_MIN);
    const longestFirst = secrets.sort((a, b) => b.length - a.length);
    const safe = longestFirst.reduce((words, secret) => words.replaceAll(secret, '[...]'), this.#stderr);
    return safe.slice(-STDERR_TAIL_CHARS).trim();
  }

  /**
   * Resolves when the operating system has taken the line.
   * @throws ActionNotExecutedError if it has not: the child ignores a line without its end
   */
  send(message: object): Promise<'written'> {
    const { stdin } = this.#child;
    if (this.#isEnded || stdin.writableLength > UNREAD_BYTES_MAX) {
      if (!this.#isEnded) this.terminate();
      return Promise.reject(new ActionNotExecutedError('the server does not read what it is sent'));
    }
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => {
        if (error) reject(new ActionNotExecutedError('the server has ended before it was asked'));
        else resolve('written');
      });
    });
  }

  /** No line states the protocol. */
  setProtocol(): void {}

  /** Kills it at once. */
  terminate(): void {
    this.#kill();
    this.#end();
  }

  /** Waits for the child to exit by itself, then ends it. */
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

  /** Sends a signal to the process group, so that it reaches what the child has started. */
  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group is empty, or the platform has no groups.
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

/** Kills the remaining children when this process ends without closing them. */
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

const LINE_FEED = 0x0a;
const BYTES_FIRST = 65_536;

/**
 * Splits untrusted bytes into lines of text, with a limit for a line without an end. The line feed at the end of a line
 * is removed.
 */
export class LineBuffer {
  readonly #bytesMax: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #bytes = Buffer.allocUnsafe(BYTES_FIRST);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that end in this piece, in order. @throws if a line is too long or not UTF-8 */
  push(piece: Uint8Array): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, from)) {
      this.#append(piece.subarray(from, end));
      lines.push(this.takeRest());
      from = end + 1;
    }
    this.#append(piece.subarray(from));
    return lines;
  }

  /** Returns and removes the text after the last line feed. @throws if it is not UTF-8 */
  takeRest(): string {
    const text = this.#decoder.decode(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return text;
  }

  /** Copies the piece; doubles the buffer when it is full, so that single bytes cost no more than large pieces. */
  #append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) throw new Error(`a message has more than ${this.#bytesMax} bytes`);
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#bytesMax, Math.max(length, this.#bytes.length * 2)));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }
}
