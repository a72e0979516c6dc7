// Runs the commands of a spec: programs and their arguments, without a shell that interprets them, in the folder of a
// case, behind a wall if one is available (`bubblewrap.ts`).
//
// Without a wall, a command may do everything that the user of the service may; the folder is only its working
// directory. In any case it gets only what is documented here, its time and its output are limited, and it is killed
// with its group. Memory, processor time and disk space have no limit.

import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type {
  CommandOrder,
  CommandOutcome,
  CommandProblem,
  CommandRunner,
} from '../../engine/ports/effects/command-runner.js';
import type { Log } from '../../engine/ports/log.js';
import { isWallUsable, wallViewOf, wallArguments, WALLED_HOME, WALLED_TEMP, type Wall } from './bubblewrap.js';
import { withCommandFolder, type CommandFolder } from './command-folder.js';
import { environmentOf, programPath, strayDescriptors } from './command-environment.js';
import { CommandProcess, launchArguments, startProcess, CommandOutput } from './command-process.js';
import { makeScratch, type CommandScratch } from './command-scratch.js';
import { errorCode } from '../../system/error-code.js';

const GRACE_MS = 2_000;
/** A command whose output exceeds the kept output by this factor is killed. */
const FLOOD_FACTOR = 8;
const TIMEOUT_MS_MAX = 86_400_000;
const OUTPUT_BYTES_MAX = 268_435_456;
/** Bytes of the wall's own output that are logged. */
const WALL_TEXT_MAX = 1_000;

/** `auto`: a wall if this machine has a working one; `required`: no command without a wall; `off`: never a wall. */
export const WALL_MODES = ['auto', 'required', 'off'] as const;
export type WallMode = (typeof WALL_MODES)[number];

export interface CommandRunnerOptions {
  /** The directory of the sandbox on the host: a case is `<root>/<case_id>/`. */
  readonly root: string;
  /** Default `auto`. */
  readonly wall?: WallMode;
  /** Further folders that are hidden behind the wall, like the sandbox root: for example the home directory. */
  readonly hidden?: readonly string[];
  /** Further folders that commands can read behind a wall, in addition to those of the system and of Node. */
  readonly visible?: readonly string[];
  /** Folders at the front of the search path for programs; they are visible. */
  readonly programs?: readonly string[];
  /** Parent of a command's temporary folder. Default: the temporary directory of the system. */
  readonly scratch?: string;
  /** Time between SIGTERM and SIGKILL for a command without a wall, in ms. Default 2,000. */
  readonly grace_ms?: number;
  /** Logs once if there is no wall, and every failure to start a command. */
  readonly log?: Log;
}

/** Creates a runner for the sandbox at `root`; a case without a folder gets one. */
export const commandRunner = (options: CommandRunnerOptions): WalledCommandRunner => new WalledCommandRunner(options);

/** Created by `commandRunner`. */
export class WalledCommandRunner implements CommandRunner {
  readonly #options: CommandRunnerOptions;
  readonly #path: string;
  readonly #strays = strayDescriptors();
  #wallProbe: Promise<boolean> | null = null;

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
    this.#path = programPath(options.programs ?? []);
  }

  /**
   * Whether commands run behind a wall here. The first call tries it.
   * @throws an error of the system if the attempt failed; the next call tries again
   */
  hasWall(): Promise<boolean> {
    if (this.#options.wall === 'off') return Promise.resolve(false);
    this.#wallProbe ??= this.#tryWall().catch((error: unknown) => {
      this.#wallProbe = null;
      throw error;
    });
    return this.#wallProbe;
  }

  async run(order: CommandOrder, signal: AbortSignal): Promise<CommandOutcome> {
    if (!isRunnable(order)) return notStartedOutcome('INVALID_ORDER');
    try {
      const walled = await this.hasWall();
      if (!walled && this.#options.wall === 'required') return notStartedOutcome('WALL_UNAVAILABLE');
      signal.throwIfAborted();
      return await this.#withScratch(order.stdin, (scratch) => this.#runWith(scratch, order, walled, signal));
    } catch (error) {
      signal.throwIfAborted();
      // After the start, no error of the operating system is thrown.
      if (errorCode(error) === '') throw error;
      this.#options.log?.error('a command could not be started', { case_id: order.case_id, error });
      return notStartedOutcome('START_FAILED');
    }
  }

  async #runWith(
    scratch: CommandScratch,
    order: CommandOrder,
    walled: boolean,
    signal: AbortSignal,
  ): Promise<CommandOutcome> {
    const launched = this.#launch(scratch, order, walled);
    if (typeof launched === 'string') return notStartedOutcome(launched);
    const command = new CommandProcess(launched.child);
    const output = new CommandOutput(launched.read, {
      output_max: order.output_bytes_max,
      bytes_max: order.output_bytes_max * FLOOD_FACTOR,
      onFlood: () => command.stop('flood', 0),
    });
    // Killing the group removes the wall and everything behind it at once, so a grace time is impossible.
    const grace_ms = walled ? 0 : (this.#options.grace_ms ?? GRACE_MS);
    const { hasBegun: begun, ...ended } = await command.runToEnd({
      timeout_ms: order.timeout_ms,
      grace_ms,
      signal,
      output,
    });
    const printed = output.result();
    if (begun || !walled) return { status: 'ran', ...ended, ...printed, walled };
    const wallOutput = printed.output.toString('utf8', 0, WALL_TEXT_MAX);
    this.#options.log?.error('the wall of a command did not come up', { case_id: order.case_id, said: wallOutput });
    return notStartedOutcome('WALL_FAILED');
  }

  /** Starts the command. @throws an error of the operating system */
  #launch(scratch: CommandScratch, order: CommandOrder, walled: boolean): LaunchedCommand | CommandProblem {
    const { input, read, write } = scratch.open();
    let launched: LaunchedCommand | CommandProblem | null = null;
    try {
      launched = withCommandFolder(this.#options.root, order.case_id, order.cwd, (folder) => {
        const streams = { input, output: write, strays: this.#strays };
        return { read, child: startProcess({ ...this.#start(scratch, order, walled, folder), ...streams }) };
      });
      return launched;
    } finally {
      for (const fd of [input, write]) closeSync(fd);
      if (launched === null || typeof launched === 'string') closeSync(read);
    }
  }

  #start(scratch: CommandScratch, { argv, cwd }: CommandOrder, walled: boolean, folder: CommandFolder) {
    const launch = launchArguments(argv);
    if (!walled) return { argv: launch, cwd: folder.path, env: environmentOf(this.#path, scratch.home, scratch.temp) };
    // The folder was resolved just now. If it is replaced before it is entered, the new one is behind the wall too.
    const wall = this.#wallAround(scratch, folder.sandbox, cwd);
    return { argv: ['bwrap', ...wallArguments(wall, launch)], cwd: '/', env: this.#walledEnvironment() };
  }

  #tryWall(): Promise<boolean> {
    return this.#withScratch(null, async (scratch) => {
      const isUsable = await isWallUsable(
        this.#wallAround(scratch, scratch.temp, '/sandbox/'),
        this.#walledEnvironment(),
      );
      if (!isUsable) this.#options.log?.warn('commands have no wall: bubblewrap is not installed, or cannot work here');
      return isUsable;
    });
  }

  #wallAround({ home, temp }: CommandScratch, sandbox: string, cwd: string): Wall {
    const { root, hidden = [], visible = [], programs = [] } = this.#options;
    return { ...wallViewOf([...programs, ...visible], [root, ...hidden]), sandbox, home, temp, cwd };
  }

  #walledEnvironment(): Readonly<Record<string, string>> {
    return environmentOf(this.#path, WALLED_HOME, WALLED_TEMP);
  }

  async #withScratch<T>(input: Uint8Array | null, use: (scratch: CommandScratch) => Promise<T>): Promise<T> {
    const { scratch: parent = tmpdir(), log } = this.#options;
    const scratch = await makeScratch(parent, this.#path, input);
    try {
      return await use(scratch);
    } finally {
      await scratch.remove().catch((error: unknown) => log?.warn('the folder of a command is left over', { error }));
    }
  }
}

interface LaunchedCommand {
  readonly child: ChildProcess;
  /** Our end of the output pipe. */
  readonly read: number;
}

function isRunnable({ argv, timeout_ms, output_bytes_max }: CommandOrder): boolean {
  const [program] = argv;
  // A shell might interpret a first word with a dash as its own option.
  if (program === undefined || program.startsWith('-') || argv.some((word) => word.includes('\0'))) return false;
  return isWithin(timeout_ms, TIMEOUT_MS_MAX) && isWithin(output_bytes_max, OUTPUT_BYTES_MAX);
}

const isWithin = (value: number, maximum: number): boolean => Number.isInteger(value) && value >= 1 && value <= maximum;

const notStartedOutcome = (problem: CommandProblem): CommandOutcome => ({ status: 'not_started', problem });
