// Programs of the system that tests of packaging need: skipped where one is missing, and an error there with CI=1. A
// machine that has them and refuses to start containers skips them, too.

import { spawnSync } from 'node:child_process';

/**
 * The reason why a suite cannot run here, or null.
 * @param trial a command that succeeds where the machine lets programs do what the suite needs
 * @throws with CI=1 if a program is missing, or this is not root
 */
export function reasonToSkip(programs: readonly string[], trial: readonly string[]): string | null {
  const missing = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  const reason =
    missing.length > 0
      ? `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not installed`
      : process.getuid?.() === 0
        ? null
        : 'only root can do this';
  if (reason === null) return findRefusal(trial);
  if (process.env['CI'] === '1') throw new Error(`with CI=1 this suite has to run: ${reason}`);
  process.stdout.write(`skipped: ${reason}\n`);
  return reason;
}

function findRefusal([name = '', ...args]: readonly string[]): string | null {
  const { status, stderr } = runProgram(name, args);
  if (status === 0) return null;
  process.stdout.write(`skipped: this machine refuses containers: ${stderr.trim().split('\n').at(-1) ?? ''}\n`);
  return 'this machine refuses containers';
}

export interface ProgramEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const MS_MAX = 150_000;

/** Runs a program to its end. */
export function runProgram(name: string, args: readonly string[], input = ''): ProgramEnd {
  const { status, stdout, stderr } = spawnSync(name, args, {
    encoding: 'utf8',
    input,
    timeout: MS_MAX,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 26,
  });
  return { status, stdout, stderr };
}

/** The standard output of a program. @throws if the program fails */
export function outputOf(name: string, args: readonly string[]): string {
  const { status, stdout, stderr } = runProgram(name, args);
  if (status !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${String(status)}:\n${stdout}${stderr}`);
  return stdout;
}
