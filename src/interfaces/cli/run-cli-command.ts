// Runs a command in this process. This module and `main.ts` are the only ones that use the process: streams,
// environment, signals, exit.

import { isatty } from 'node:tty';
import { winstonLog } from '../../system/winston-log.js';
import { hidePasswords } from '../../home/hide-passwords.js';
import { systemClock } from '../../system/system-clock.js';
import { endFirstProcessOnSignals } from './first-process.js';
import { Output, type Io } from './io.js';
import { createProgress } from './progress-bar.js';
import { turnpikeCommand } from './turnpike-command.js';

const hasColours = isatty(1) && process.env['NO_COLOR'] === undefined && process.env['TERM'] !== 'dumb';

// SQLite reads this when it is loaded, with the first database: a reader names its file by a URI (untouched-file.ts).
process.env['SQLITE_USE_URI'] = '1';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
let stopping: AbortController | null = null;

// The first signal after `listenForStop` is its own: this listener comes first, and finds it not yet aborted.
endFirstProcessOnSignals(process, () => stopping?.signal.aborted === false);

// Other users can list the arguments of a process: the title of the process replaces them.
if (process.argv.some((argument) => hidePasswords(argument) !== argument)) process.title = 'turnpike';

/** After the first call, the first signal aborts the command and the second ends the process. */
function listenForStop(): AbortSignal {
  if (stopping === null) {
    const controller = new AbortController();
    stopping = controller;
    for (const signal of SIGNALS) process.once(signal, () => controller.abort());
  }
  return stopping.signal;
}

/** Unless the command listens for signals itself, the signal then ends the process as if there were no listener. */
function beforeSignal(action: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals): void => {
    action();
    cancel();
    if (stopping === null) process.kill(process.pid, signal);
  };
  const cancel = (): void => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return cancel;
}

const stdout = new Output(process.stdout, isatty(1));
const stderr = new Output(process.stderr, isatty(2));

const io: Io = {
  // Created on first use: most commands read nothing.
  get stdin() {
    return process.stdin;
  },
  stdinIsTTY: isatty(0),
  stdout,
  stderr,
  cwd: process.cwd(),
  environment: process.env,
  colours: hasColours,
  log: winstonLog('error'),
  progress: createProgress({ stdout, stderr, clock: systemClock(), beforeSignal }, process.env['TERM']),
  beforeSignal,
  stop: listenForStop,
};

/** Runs the command of the arguments, and ends the process. */
export async function runCommand(argv: readonly string[]): Promise<never> {
  // Every write has been awaited. An input that is still open must not keep the process alive.
  return process.exit(await turnpikeCommand(argv, io));
}
