// Running a program of a spec for a case. What is run, where and for how long was decided before; this only does it.

/** A program and its arguments, and what it may have. Nothing else is given to it. */
export interface CommandOrder {
  /** The program, then its arguments, each handed on as it is: no shell reads them. */
  readonly argv: readonly string[];
  /** The case in whose sandbox it runs. */
  readonly case_id: string;
  /** A folder inside that sandbox, as the contract writes it: `/sandbox/` or `/sandbox/...`. No link leads there. */
  readonly cwd: string;
  /** From its start; then it is ended, with all that it has started. */
  readonly timeout_ms: number;
  /** How much of the output is kept. One that prints more than 8 times as much is killed. */
  readonly output_bytes_max: number;
  /** What it can read from its standard input; null: nothing. */
  readonly stdin: Uint8Array | null;
}

/**
 * Why a command was not started.
 *   INVALID_ORDER        the order cannot be carried out as it is: no program, a NUL in an argument, no such case id
 *   CWD_NOT_FOUND        there is no such folder
 *   CWD_NOT_A_DIRECTORY  it is a file
 *   CWD_REFUSED          it is no path of a sandbox, a link or another file system is in the way, or it is closed
 *   WALL_UNAVAILABLE     a wall is required, and this machine has none that works
 *   WALL_FAILED          there is one, and it did not come up this time
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

/** What came of a command that was started. */
export interface CommandRun {
  readonly status: 'ran';
  /**
   * 0 to 255, as shells have it: its own; 127 if there is no such program, 126 if it cannot be executed; 128 + N if
   * signal N ended it. 124 if its time was over, and 137 if it printed too much, however it ended then.
   */
  readonly exit_code: number;
  readonly timed_out: boolean;
  /** The beginning of what it printed, both streams in the order in which it wrote them. */
  readonly output: Uint8Array;
  /** SHA-256 of all that it printed. */
  readonly output_sha256: string;
  /** How much that was. */
  readonly output_bytes: number;
  /** `output` is not all of it. */
  readonly truncated: boolean;
  /** It ran behind a wall: without a network, and with no files of this machine but programs and its case. */
  readonly walled: boolean;
}

/** `not_started`: certainly nothing was run. */
export type CommandOutcome = CommandRun | { readonly status: 'not_started'; readonly problem: CommandProblem };

export interface CommandRunner {
  /**
   * Runs the command and answers when it is over. It is over when its own process is: what it has left running is
   * killed then. It sees an environment made for it, with an empty home and an empty temporary folder of its own.
   * @throws `signal.reason` when the signal is aborted; the command has been killed by then, or was not started
   */
  run(order: CommandOrder, signal: AbortSignal): Promise<CommandOutcome>;
}
