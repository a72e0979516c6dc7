import { sha256 } from '../../../contract/hash.js';
import { ActionNotExecutedError } from '../../../errors.js';
import type { CommandOrder, CommandProblem, CommandRun, CommandRunner } from '../../../ports/effects/command-runner.js';

/** What shells say for a program that is there and cannot be executed. */
const NOT_EXECUTABLE = 126;

/** What is wrong with the folder of a command: that of the case, and so the work of whoever filled it. */
const FOLDER_PROBLEMS: Readonly<Partial<Record<CommandProblem, string>>> = {
  CWD_NOT_FOUND: 'there is no such folder',
  CWD_NOT_A_DIRECTORY: 'it is not a folder',
  CWD_REFUSED: 'no link and no other file system may lead there, and it must be open to its owner',
};

/**
 * Runs a command of a spec. Where its folder is not as it should be, it ends with exit code 126 and says why: an agent
 * that removes the folder must not come off better than one that breaks the program.
 * @throws NotExecuted if this machine cannot run it: certainly nothing was done
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

/** Of the beginning, where a command says what it does, and of the end, where it says what came of it. */
const HEAD_BYTES = 16_384;
const TAIL_BYTES = 49_152;

/** What a command printed, as text for an agent: bytes that are no UTF-8 are U+FFFD. */
export function truncateOutput({ output, output_bytes, truncated }: CommandRun) {
  if (!truncated && output.length <= HEAD_BYTES + TAIL_BYTES) return { text: textOf(output), whole: true };
  // Of what is cut off already, the end is not known: then the beginning has all the room.
  const head = truncated ? HEAD_BYTES + TAIL_BYTES : HEAD_BYTES;
  const tail = truncated ? new Uint8Array() : output.subarray(-TAIL_BYTES);
  const left_out = output_bytes - Math.min(head, output.length) - tail.length;
  return {
    text: `${textOf(output.subarray(0, head))}\n[${left_out} bytes are left out]\n${textOf(tail)}`,
    whole: false,
  };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
