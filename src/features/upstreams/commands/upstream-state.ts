// The upstream servers of a contract folder, for commands: connects to them, reads their tools and closes them.

import { usageError } from '../../../core/errors.js';
import { join } from 'node:path';
import { systemClock } from '../../../system/system-clock.js';
import { UPSTREAMS_FILE, type UpstreamPins } from '../../../core/contract/policy/upstreams.js';
import type { UpstreamProblem } from '../../../runtime/effects/tools-of-features.js';
import { surveyUpstreams, type UpstreamSurvey } from '../connect-upstreams.js';
import { readUpstreams } from '../upstream-files.js';
import type { CommandArguments } from '../../../interfaces/cli/command.js';
import { findContractFolder, displayPath } from '../../../interfaces/cli/options/folders.js';
import { type Io } from '../../../interfaces/cli/io.js';
import { escapeText } from '../../../interfaces/cli/text/terminal.js';

export interface UpstreamState {
  readonly contract: string;
  readonly pins: UpstreamPins['pins'];
  readonly survey: UpstreamSurvey;
}

/**
 * Connects to all servers and closes them after `work`, also when the command is stopped.
 * @throws UsageError if no servers are configured; PolicyError for unusable files
 */
export async function withUpstreams<T>(
  args: CommandArguments,
  io: Io,
  work: (found: UpstreamState) => Promise<T>,
): Promise<T> {
  const { path, isChosen: chosen } = findContractFolder(args, io);
  if (!chosen)
    throw usageError('no contract folder: name one with --contract DIR, or create ./contract with `turnpike init`');
  const files = readUpstreams(path);
  const file = join(path, UPSTREAMS_FILE);
  if (files === null) throw usageError(`${displayPath(file, io)} is missing: it must list the upstream servers`);
  const { config, pins } = files;
  const signal = io.stop();
  const survey = await surveyUpstreams(config, pins, { clock: systemClock(), log: io.log, folder: path, signal });
  try {
    return await work({ contract: path, pins: pins.pins, survey });
  } finally {
    await survey.close();
  }
}

/** Prints problems to stderr, because they are not the requested output. */
export async function printProblems(problems: readonly UpstreamProblem[], io: Io): Promise<void> {
  for (const { message } of problems) await io.stderr.writeLine(escapeText(message));
}
