// Runs a program of a spec in a case. The caller has already decided which program runs, where and for how long.

/** A program, its arguments and its limits. The command gets nothing else. */
export interface CommandOrder {
  /** The program, then its arguments. Each is passed on unchanged; no shell reads them. */
  readonly argv: readonly string[];
  /** The case in whose sandbox it runs. */
  readonly case_id: string;
  /** A folder inside that sandbox, in the form of the contract: `/sandbox/` or `/sandbox/...`. No link leads to it. */
  readonly cwd: string;
  /** Milliseconds from its start. The runner then kills it and all processes that it has started. */
  readonly timeout_ms: number;
  /** Maximum bytes of output that are stored. A command that prints more than 8 times as much is killed. */
  readonly output_bytes_max: number;
  /** The content of its standard input; null for none. */
  readonly stdin: Uint8Array | null;
}

/**
 * Why a command was not started.
 *   INVALID_ORDER        the order is malformed: no program, a NUL in an argument, an invalid case id
 *   CWD_NOT_FOUND        the folder does not exist
 *   CWD_NOT_A_DIRECTORY  it is a file
 *   CWD_REFUSED          it is outside the sandbox, crosses a link or another file system, or cannot be opened
 *   WALL_UNAVAILABLE     a wall is required, and none works on this machine
 *   WALL_FAILED          a wall exists, but it failed to start this time
 *   START_FAILED         the system could not start it: no process, descriptor or space left
 */
export const COMMAND_PROBLEMS = [
  'INVALID_ORDER',
  'CWD_NOT_FOUND',
  'CWD_NOT_A_DIRECTORY',
  'CWD_REFUSED',
  'WALL_UNAVAILABLE',
  'WALL_FAILED',
  'START_FAILED',
] as const;
export type CommandProblem = (typeof COMMAND_PROBLEMS)[number];

/** The result of a command that was started. */
export interface CommandRun {
  readonly status: 'ran';
  /**
   * 0 to 255, as in shells: the program's own code; 127 if the program does not exist, 126 if it cannot be executed,
   * 128 + N if signal N ended it. It is 124 after the timeout and 137 after too much output, however the program ended.
   */
  readonly exit_code: number;
  readonly timed_out: boolean;
  /** The beginning of its output, both streams in the order in which it wrote them. */
  readonly output: Uint8Array;
  /** SHA-256 of the whole output. */
  readonly output_sha256: string;
  /** Size of the whole output, in bytes. */
  readonly output_bytes: number;
  /** Whether `output` is incomplete. */
  readonly truncated: boolean;
  /**
   * Whether it ran behind a wall: without a network, and with no files of this machine except programs and its case.
   */
  readonly walled: boolean;
}

/** `not_started`: certainly no process was started. */
export type CommandOutcome = CommandRun | { readonly status: 'not_started'; readonly problem: CommandProblem };

export interface CommandRunner {
  /**
   * Runs the command and resolves when its own process has ended. Processes that it has left running are killed then.
   * It gets an environment of its own, with an empty home and an empty temporary folder.
   * @throws `signal.reason` if the signal is aborted; the command has been killed by then, or was not started
   */
  run(order: CommandOrder, signal: AbortSignal): Promise<CommandOutcome>;
}
