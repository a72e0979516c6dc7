// Helpers of the command tests: a sandbox with a case, a runner, and one-liners for a real Node.

import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  commandRunner,
  type CommandRunnerOptions,
  type WalledCommandRunner,
} from '../../../src/sandbox/commands/walled-command-runner.js';
import type { CommandOrder, CommandOutcome, CommandRun } from '../../../src/engine/ports/effects/command-runner.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { skip } from '../files/sandbox-harness.js';

export const CASE = 'case_1';

/**
 * Longer than any of these tests takes: a command that should end by itself or be killed must not end by this timeout.
 */
export const LONG_MS = 50_000;

export interface CommandsUnderTest {
  readonly base: string;
  /** The root of the sandbox, and the folder of `CASE` in it. */
  readonly root: string;
  readonly home: string;
  /** Parent of the scratch folders of commands, and what is left in it. */
  readonly scratch: string;
  leftOver(): readonly string[];
  runner(options?: Partial<CommandRunnerOptions>): WalledCommandRunner;
  remove(): void;
}

export function commandsUnderTest(): CommandsUnderTest {
  const base = realpathSync(diskFolder('commands'));
  const [root, scratch] = [join(base, 'root'), join(base, 'scratch')];
  const home = join(root, CASE);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  mkdirSync(scratch);
  return {
    base,
    root,
    home,
    scratch,
    leftOver: () => readdirSync(scratch),
    runner: (options = {}) => commandRunner({ root, scratch, wall: 'off', ...options }),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}

export const orderOf = (argv: readonly string[], more: Partial<CommandOrder> = {}): CommandOrder => ({
  argv,
  case_id: CASE,
  cwd: '/sandbox/',
  timeout_ms: LONG_MS,
  output_bytes_max: 65_536,
  stdin: null,
  ...more,
});

export const NEVER: AbortSignal = new AbortController().signal;

/** A program in one line, and its arguments. */
export const node = (line: string, ...args: readonly string[]): readonly string[] => ['node', '-e', line, ...args];

/** Runs it. @throws unless it ran */
export async function ranBy(
  runner: WalledCommandRunner,
  argv: readonly string[],
  more: Partial<CommandOrder> = {},
): Promise<CommandRun> {
  const outcome: CommandOutcome = await runner.run(orderOf(argv, more), NEVER);
  if (outcome.status !== 'ran') throw new Error(`not started: ${outcome.problem}`);
  return outcome;
}

export const textOf = ({ output }: CommandRun): string => Buffer.from(output).toString('utf8');

/** Waits until the condition is true, within the time of a test. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10);
}

/** Whether the process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Whether this machine supports a wall; if not, logs it, and in CI throws. */
export async function canWall(): Promise<boolean> {
  const commands = commandsUnderTest();
  const stands = await commands.runner({ wall: 'auto' }).hasWall();
  commands.remove();
  if (!stands && process.env['CI'] !== undefined) throw new Error('bubblewrap does not work, and CI must have it');
  if (!stands) skip('what needs bubblewrap, which does not work here');
  return stands;
}
