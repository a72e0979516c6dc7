// Runs the command in this process, with streams in place of a terminal, and captures its output.

import { chmodSync, constants, cpSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import type { ExitCode } from '../../../src/interfaces/cli/command.js';
import { Output, type Io } from '../../../src/interfaces/cli/io.js';
import { createProgress, type ProgressBarParts } from '../../../src/interfaces/cli/progress-bar.js';
import { turnpikeCommand } from '../../../src/interfaces/cli/turnpike-command.js';
import { suiteFolder, tempFolder } from '../../fixtures/temp-folder.js';

export { tempFolder } from '../../fixtures/temp-folder.js';

export interface Said {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
  /** The messages of the service log. */
  readonly log: readonly string[];
}

export interface World {
  readonly stdin?: Readable | string | Uint8Array;
  readonly stdoutTTY?: boolean;
  readonly stderrTTY?: boolean;
  readonly colours?: boolean;
  /** The clock of the progress bar. Default: one that stands still, so that no bar appears. */
  readonly clock?: ProgressBarParts['clock'];
  /** The value of TERM. */
  readonly terminal?: string;
  readonly stop?: AbortSignal;
  /** The variables of the environment. Default: none. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Handles each chunk that is written to stdout. */
  readonly onStdout?: (text: string) => void;
  readonly onStderr?: (text: string) => void;
  /** The reader of stdout disconnects after this many lines. */
  readonly readerLeavesAfter?: number;
}

/** With it no bar appears, because no time passes. */
const STOPPED_CLOCK: ProgressBarParts['clock'] = { now: () => 0, wake: () => () => undefined };

/** A clock of which one second passes at each look. */
export function fastClock(): ProgressBarParts['clock'] {
  let now = 0;
  return { now: () => now, monotonic: () => (now += 1_000), wake: () => () => undefined };
}

/** Runs `turnpike` in the folder `cwd`. */
export async function turnpike(cwd: string, argv: readonly string[], world: World = {}): Promise<Said> {
  const log: string[] = [];
  const stdout: string[] = [];
  const stderr: string[] = [];
  const note = (message: string): void => void log.push(message);
  const out = new Output(sink(stdout, world), world.stdoutTTY ?? false);
  const err = new Output(
    sink(stderr, world.onStderr === undefined ? {} : { onStdout: world.onStderr }),
    world.stderrTTY ?? false,
  );
  const beforeSignal = (): (() => void) => () => undefined;
  const parts = { stdout: out, stderr: err, beforeSignal, clock: world.clock ?? STOPPED_CLOCK };
  const io: Io = {
    stdin: stdinOf(world.stdin ?? ''),
    stdinIsTTY: false,
    stdout: out,
    stderr: err,
    progress: createProgress(parts, world.terminal),
    beforeSignal,
    cwd,
    environment: world.environment ?? {},
    colours: world.colours ?? false,
    // The log of the command leaves out what is for services only.
    log: { info: () => undefined, warn: note, error: note },
    stop: () => world.stop ?? new AbortController().signal,
  };
  const code = await turnpikeCommand(argv, io);
  return { code, stdout: stdout.join(''), stderr: stderr.join(''), log };
}

function sink(into: string[], { onStdout, readerLeavesAfter = Infinity }: World): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (into.length >= readerLeavesAfter) {
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
        return;
      }
      into.push(chunk.toString('utf8'));
      onStdout?.(chunk.toString('utf8'));
      done();
    },
  });
}

function stdinOf(input: Readable | string | Uint8Array): Readable {
  if (input instanceof Readable) return input;
  const stream = new PassThrough();
  stream.end(input);
  return stream;
}

/** A folder in which `turnpike init` was run, with the policy of the contract, and a key of its own. */
export async function ownLedger(): Promise<string> {
  const folder = tempFolder();
  const { code, stderr } = await turnpike(folder, ['init', '--template', 'reference']);
  if (code !== 0) throw new Error(stderr);
  return folder;
}

/** Copies a folder, with the modes of its folders: since Node 22 `cpSync` gives them new ones. */
export function copyOf(folder: string): string {
  const copy = tempFolder();
  cpSync(folder, copy, { recursive: true });
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const { mode } = lstatSync(join(folder, name));
    if ((mode & constants.S_IFMT) === constants.S_IFDIR) chmodSync(join(copy, name), mode & 0o777);
  }
  return copy;
}

/** What the copies of a suite are made of. */
let model: { readonly suite: string; readonly folder: Promise<string> } | null = null;

/** A copy of the one folder of its suite in which `turnpike init` was run: all have the same key. */
export async function initialised(): Promise<string> {
  // Suites of one process share this module, and the folders of each are removed at its end.
  const suite = suiteFolder('model');
  if (model?.suite !== suite) model = { suite, folder: ownLedger() };
  return copyOf(await model.folder);
}

let count = 0;

/** A proposal as one line of text, with a new id. */
export const line = (action: string, args: object = {}, over: object = {}): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String((count += 1)).padStart(12, '0')}`,
    reasoning: 'Because it is needed.',
    action,
    args,
    ...over,
  });

export const think = (): string => line('THINK');
export const write = (path: string, content: string): string => line('WRITE_FILE', { path, content });
export const read = (path: string): string => line('READ_FILE', { path });
export const finish = (response = 'done'): string => line('FINISH', { response });

export function put(folder: string, name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return name;
}

export const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);
export const jsonLines = <T = Record<string, unknown>>(text: string): T[] =>
  linesOf(text).map((each) => JSON.parse(each) as T);
export const outcomes = (text: string): unknown[] => jsonLines(text).map(({ outcome }) => outcome);
