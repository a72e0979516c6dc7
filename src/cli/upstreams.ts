// The upstream servers of a contract folder, as the commands look at them: connected, read, and let go of.

import { join } from 'node:path';
import { systemClock } from '../adapters/system-clock.js';
import { UPSTREAMS_FILE, type UpstreamPins } from '../contract/upstreams.js';
import { surveyUpstreams, type Survey, type UpstreamProblem } from '../runtime/upstream/connect-upstreams.js';
import { readUpstreams } from '../runtime/upstream/upstream-files.js';
import type { Args } from './command.js';
import { contractOf, shownPath } from './folders.js';
import { usage, type Io } from './io.js';
import { escaped } from './terminal.js';

export interface LookedAt {
  /** The contract folder. */
  readonly contract: string;
  readonly pins: UpstreamPins['pins'];
  readonly survey: Survey;
}

/**
 * Connects to all servers, and ends what was started after `work`, also when the command is asked to stop.
 * @throws UsageError where no servers are configured; PolicyError for files that cannot be used
 */
export async function withUpstreams<T>(args: Args, io: Io, work: (found: LookedAt) => Promise<T>): Promise<T> {
  const { path, chosen } = contractOf(args, io);
  if (!chosen) throw usage('which contract? say --contract DIR, or make ./contract by `turnpike init`');
  const files = readUpstreams(path);
  const file = join(path, UPSTREAMS_FILE);
  if (files === null) throw usage(`${shownPath(file, io)} is missing: it says which servers there are`);
  const { config, pins } = files;
  const signal = io.stop();
  const survey = await surveyUpstreams(config, pins, { clock: systemClock(), log: io.log, folder: path, signal });
  try {
    return await work({ contract: path, pins: pins.pins, survey });
  } finally {
    await survey.close();
  }
}

/** Problems on stderr: they are beside what was asked for. */
export async function tellProblems(problems: readonly UpstreamProblem[], io: Io): Promise<void> {
  for (const { message } of problems) await io.stderr.say(escaped(message));
}
