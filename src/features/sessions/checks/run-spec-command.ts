import { sha256 } from '../../../core/contract/hash.js';
import { ActionNotExecutedError } from '../../../core/errors.js';
import type {
  CommandOrder,
  CommandProblem,
  CommandRun,
  CommandRunner,
} from '../../../engine/ports/effects/command-runner.js';

/** The exit code of shells for a program that exists and cannot be executed. */
const NOT_EXECUTABLE = 126;

/** Problems with the working directory of a command. It belongs to the case, so an agent may have caused them. */
const FOLDER_PROBLEMS: Readonly<Partial<Record<CommandProblem, string>>> = {
  CWD_NOT_FOUND: 'there is no such folder',
  CWD_NOT_A_DIRECTORY: 'it is not a folder',
  CWD_REFUSED: 'no link and no other file system may lead there, and it must be open to its owner',
};

/**
 * Runs a command of a spec. If its working directory is unusable, it ends with exit code 126 and a message: an agent
 * that removes the directory must not fare better than one that breaks the program.
 * @throws ActionNotExecutedError if this machine cannot run it: certainly nothing was done
 * @throws `signal.reason` when the signal is aborted
 */
export async function runSpecCommand(
  commands: CommandRunner,
  order: CommandOrder,
  signal: AbortSignal,
): Promise<CommandRun> {
  const outcome = await commands.run(order, signal);
  if (outcome.status === 'ran') return outcome;
  const { problem } = outcome;
  const why = FOLDER_PROBLEMS[problem];
  if (why === undefined) {
    throw new ActionNotExecutedError(`a command could not be started: ${problem}`, {
      retryable: problem !== 'INVALID_ORDER',
    });
  }
  const output = Buffer.from(`cannot run in ${order.cwd}: ${why}\n`);
  return {
    status: 'ran',
    exit_code: NOT_EXECUTABLE,
    timed_out: false,
    output,
    output_sha256: sha256(output),
    output_bytes: output.length,
    truncated: false,
    walled: false,
  };
}

/**
 * How much of the output an agent sees: the beginning, where a command says what it does, and the end with its result.
 */
const HEAD_BYTES = 16_384;
const TAIL_BYTES = 49_152;

/** The output of a command as text for an agent. Bytes that are not UTF-8 become U+FFFD. */
export function truncateOutput({ output, output_bytes, truncated }: CommandRun) {
  if (!truncated && output.length <= HEAD_BYTES + TAIL_BYTES) return { text: textOf(output), whole: true };
  // The end of truncated output is unknown, so the beginning gets all the room.
  const head = truncated ? HEAD_BYTES + TAIL_BYTES : HEAD_BYTES;
  const tail = truncated ? new Uint8Array() : output.subarray(-TAIL_BYTES);
  const left_out = output_bytes - Math.min(head, output.length) - tail.length;
  return {
    text: `${textOf(output.subarray(0, head))}\n[${left_out} bytes are left out]\n${textOf(tail)}`,
    whole: false,
  };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
