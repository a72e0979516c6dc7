// One process with all its children: its own process group, in a session without a terminal.
//
//   P1. The group is killed as a whole: on timeout, on excessive output, on cancellation, when this process ends, and
//       when its first process has ended and left others running.
//   P2. Waiting is bounded: a process that left the group and keeps the output open is not waited for, and a process
//       that survives SIGKILL is given up.
//   P3. The reason for a kill decides the exit code: a command cannot catch the signal and report success.

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants as system } from 'node:os';
import type { Readable } from 'node:stream';
import { errorCode } from '../../system/error-code.js';
import { createHash } from 'node:crypto';
import { Socket } from 'node:net';

/** How long the output may take to end after the process has ended, in ms. */
const DRAIN_MS = 1_000;
/** How long the process may take to end after it was killed, in ms. */
const DEATH_MS = 10_000;
const TIMED_OUT = 124;
const FLOODED = 137;

/**
 * Run by the shell, which does not interpret the command: restricts file permissions, disables core dumps, reports on
 * descriptor 3 that the program begins, and executes the program in place of the shell.
 */
const LAUNCH = 'umask 077; ulimit -c 0 2>/dev/null; echo >&3; exec 3>&-; exec "$@"';
export const launchArguments = (argv: readonly string[]): readonly string[] => ['/bin/sh', '-c', LAUNCH, 'sh', ...argv];
const BEGIN_DESCRIPTOR = 3;

export interface ProcessStart {
  /** A program by path or name, and its arguments. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: number;
  readonly output: number;
  /** Descriptors of this process that the child would inherit; it gets /dev/null in their place. */
  readonly strays: readonly number[];
}

/** @throws an error of the operating system at once; more may be reported as the event `error` */
export function startProcess({
  argv: [program = '', ...args],
  cwd,
  env,
  input,
  output,
  strays,
}: ProcessStart): ChildProcess {
  const nothing = openSync('/dev/null', 'r');
  try {
    const stdio: (number | 'pipe' | 'ignore')[] = [input, output, output, 'pipe'];
    for (const fd of strays) {
      while (stdio.length < fd) stdio.push('ignore');
      stdio[fd] = nothing;
    }
    return spawn(program, args, { cwd, env, stdio, detached: true, windowsHide: true });
  } finally {
    closeSync(nothing);
  }
}

export interface ProcessControl {
  readonly timeout_ms: number;
  /** Time between SIGTERM and SIGKILL on timeout; 0: SIGKILL at once. */
  readonly grace_ms: number;
  readonly signal: AbortSignal;
  readonly output: CommandOutput;
}

export interface ProcessEnd {
  readonly exit_code: number;
  readonly timed_out: boolean;
  /** Whether the program was executed: `LAUNCH` reports it. */
  readonly hasBegun: boolean;
}

/** Why it was killed: timeout, excessive output, or cancellation. */
type KillReason = 'time' | 'flood' | 'call';

/** A started process. */
export class CommandProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<number>;
  #giveUp: () => void = () => undefined;
  #killReason: KillReason | null = null;
  #killTimer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = new Promise((settle, fail) => {
      this.#giveUp = () => settle(FLOODED);
      child.on('error', fail);
      child.once('exit', (code, signal) => settle(code ?? 128 + system.signals[signal ?? 'SIGKILL']));
    });
  }

  /**
   * Waits for the end of the process group, within the limits.
   * @throws the error of the operating system if the start failed
   * @throws the reason of `signal` if it was aborted, after the end of the process
   */
  async runToEnd({ timeout_ms, grace_ms, signal, output }: ProcessControl): Promise<ProcessEnd> {
    const kill = () => this.#kill('SIGKILL');
    const cancel = () => this.stop('call', 0);
    const begun = watchStream(this.#child.stdio[BEGIN_DESCRIPTOR]);
    const time = setTimeout(() => this.stop('time', grace_ms), timeout_ms);
    const settle = () => {
      clearTimeout(time);
      clearTimeout(this.#killTimer);
      signal.removeEventListener('abort', cancel);
      removeExitHandler(kill);
    };
    signal.addEventListener('abort', cancel);
    addExitHandler(kill);
    try {
      if (signal.aborted) cancel();
      const code = await this.#exited;
      settle();
      kill();
      await waitForDrain(Promise.all([output.closed, begun.closed]));
      signal.throwIfAborted();
      const timed_out = this.#killReason === 'time';
      const exit_code = timed_out ? TIMED_OUT : this.#killReason === 'flood' ? FLOODED : code;
      return { exit_code, timed_out, hasBegun: begun.any() };
    } finally {
      settle();
      output.cut();
      begun.cut();
      this.#child.unref();
    }
  }

  /** Ends the group: with SIGTERM, and with SIGKILL after `grace_ms`, if not 0. The first reason counts. */
  stop(reason: KillReason, grace_ms: number): void {
    this.#killReason ??= reason;
    clearTimeout(this.#killTimer);
    this.#kill(grace_ms > 0 ? 'SIGTERM' : 'SIGKILL');
    const next = grace_ms > 0 ? () => this.stop(reason, 0) : this.#giveUp;
    this.#killTimer = setTimeout(next, grace_ms > 0 ? grace_ms : DEATH_MS);
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // ESRCH: the group is empty. EPERM: its remaining processes belong to another user by now.
      if (!['ESRCH', 'EPERM'].includes(errorCode(error))) throw error;
    }
  }
}

/** Tracks whether data came and when the stream closed. There is no stream if the start failed. */
function watchStream(stream: unknown) {
  const readable = (stream ?? null) as Readable | null;
  let came = false;
  readable?.on('data', () => (came = true)).on('error', () => undefined);
  const closed = new Promise<void>((settle) => void readable?.once('close', () => settle()));
  return { closed, any: () => came, cut: () => void readable?.destroy() };
}

async function waitForDrain(ended: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise((settle) => (timer = setTimeout(settle, DRAIN_MS)));
  await Promise.race([ended, over]);
  clearTimeout(timer);
}

/** Handlers for an orderly exit of this process; a wall ends with the process in any case. */
const exitHandlers = new Set<() => void>();
const runExitHandlers = () => exitHandlers.forEach((one) => one());

function addExitHandler(one: () => void): void {
  if (exitHandlers.size === 0) process.once('exit', runExitHandlers);
  exitHandlers.add(one);
}

function removeExitHandler(one: () => void): void {
  exitHandlers.delete(one);
  if (exitHandlers.size === 0) process.off('exit', runExitHandlers);
}

// The output of a command: read to its end, counted and hashed completely, and kept up to a limit. The bytes are not
// interpreted.

interface OutputLimits {
  /** How many bytes are kept. */
  readonly output_max: number;
  /** Beyond this number of bytes, `onFlood` is called once. */
  readonly bytes_max: number;
  readonly onFlood: () => void;
}

export class CommandOutput {
  /** Resolves when the output is complete. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #hash = createHash('sha256');
  readonly #chunks: Uint8Array[] = [];
  readonly #limits: OutputLimits;
  #bytes = 0;
  #isCut = false;

  /** Owns `fd`, the non-blocking read end of a pipe. */
  constructor(fd: number, limits: OutputLimits) {
    this.#limits = limits;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.closed = new Promise((settle) => this.#socket.once('close', () => settle()));
    this.#socket.on('data', (chunk: Uint8Array) => this.#receive(chunk));
    // A pipe that fails is treated as ended and truncated.
    this.#socket.on('error', () => (this.#isCut = true));
  }

  /** Stops reading. */
  cut(): void {
    if (this.#socket.closed) return;
    this.#isCut = true;
    this.#socket.destroy();
  }

  /** The output so far. Call it once, at the end. */
  result() {
    const output = Buffer.concat(this.#chunks);
    return {
      output,
      output_sha256: this.#hash.digest('hex'),
      output_bytes: this.#bytes,
      truncated: this.#isCut || output.length < this.#bytes,
    };
  }

  #receive(chunk: Uint8Array): void {
    const { output_max, bytes_max, onFlood } = this.#limits;
    const room = output_max - this.#bytes;
    const flooded = this.#bytes > bytes_max;
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    // A copy: a short remainder must not keep the whole chunk in memory.
    if (room > 0) this.#chunks.push(Uint8Array.prototype.slice.call(chunk, 0, room));
    if (!flooded && this.#bytes > bytes_max) onFlood();
  }
}
