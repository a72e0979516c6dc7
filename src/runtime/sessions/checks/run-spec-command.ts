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
