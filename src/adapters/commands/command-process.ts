// One process with all that it starts: a process group of its own, in a session without a terminal.
//
//   P1. The group is killed as a whole: when its time is over, when it prints too much, when it is called off, when
//       this process ends, and when its first process has ended by itself and left others running.
//   P2. Waiting for it is bounded: whoever has left the group and holds on to the output is not waited for, and what
//       not even SIGKILL ends is given up.
//   P3. What decides the exit code is why it was ended, where it was: a command cannot catch the signal and end well.

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants as system } from 'node:os';
import type { Readable } from 'node:stream';
import type { CommandOutput } from './command-output.js';
import { errorCode } from '../system/error-code.js';

/** How long its output may take to end once it has ended itself. */
const DRAIN_MS = 1_000;
/** How long it may take to end once it has been killed. */
const DEATH_MS = 10_000;
const TIMED_OUT = 124;
const FLOODED = 137;

/**
 * Run by the shell, which reads nothing of the command: restricts what the program makes, keeps it from leaving its
 * memory behind, says that it is about to begin, and has it take the shell's place.
 */
const LAUNCH = 'umask 077; ulimit -c 0 2>/dev/null; echo >&3; exec 3>&-; exec "$@"';
export const launchArguments = (argv: readonly string[]): readonly string[] => ['/bin/sh', '-c', LAUNCH, 'sh', ...argv];
const BEGIN_DESCRIPTOR = 3;

export interface ProcessStart {
  /** A program by its path or its name, and its arguments. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: number;
  readonly output: number;
  /** Descriptors of this process that it would inherit; it gets nothing in their place. */
  readonly strays: readonly number[];
}

/** @throws what the system says against it at once; more may come as the event `error` */
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
  /** Between SIGTERM and SIGKILL when its time is over; 0: SIGKILL at once. */
  readonly grace_ms: number;
  readonly signal: AbortSignal;
  readonly output: CommandOutput;
}

export interface ProcessEnd {
  readonly exit_code: number;
  readonly timed_out: boolean;
  /** Whether the program's turn came: `launchOf` says so. */
  readonly hasBegun: boolean;
}

/** Why it was ended: its time was over, it printed too much, or it was called off. */
type KillReason = 'time' | 'flood' | 'call';

/** A process that was started. */
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
   * Sees it to its end.
   * @throws what the system said against its start
   * @throws the signal's reason when that is aborted, after its end
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

  /** Ends it: with SIGTERM, and SIGKILL after the grace, if there is one. The first reason counts. */
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
      // ESRCH: nobody is left. EPERM: whoever is left has become somebody else's.
      if (!['ESRCH', 'EPERM'].includes(errorCode(error))) throw error;
    }
  }
}

/** Whether anything came, and when nothing more will. There is no stream where the start failed. */
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

/** To be done when this process ends in an orderly way; a wall ends with it in any case. */
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
