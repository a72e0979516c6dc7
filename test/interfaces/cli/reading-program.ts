// Runs commands one after the other in one process, which a test starts on a read-only file system. Reads calls from
// stdin as JSON, and prints their results.

import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Output, type Io } from '../../../src/interfaces/cli/io.js';
import { HIDDEN_PROGRESS } from '../../../src/interfaces/cli/progress-bar.js';
import { turnpikeCommand } from '../../../src/interfaces/cli/turnpike-command.js';

/** What the program is to run. */
export interface ReadingCalls {
  readonly cwd: string;
  readonly calls: readonly (readonly string[])[];
}

/** The result of one call. */
export interface ReadingResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const collect = (into: string[]): Output =>
  new Output(
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        into.push(chunk.toString('utf8'));
        done();
      },
    }),
    false,
  );

async function call(cwd: string, argv: readonly string[]): Promise<ReadingResult> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const ignore = (): void => undefined;
  const io: Io = {
    stdin: new PassThrough().end(),
    stdinIsTTY: false,
    stdout: collect(stdout),
    stderr: collect(stderr),
    cwd,
    colours: false,
    progress: HIDDEN_PROGRESS,
    beforeSignal: () => ignore,
    environment: {},
    log: { info: ignore, warn: ignore, error: (message) => void stderr.push(`${message}\n`) },
    stop: () => AbortSignal.abort(),
  };
  const code = await turnpikeCommand(argv, io);
  return { code, stdout: stdout.join(''), stderr: stderr.join('') };
}

const { cwd, calls } = JSON.parse(await text(process.stdin)) as ReadingCalls;
const results: ReadingResult[] = [];
for (const argv of calls) results.push(await call(cwd, argv));
process.stdout.write(JSON.stringify(results));
