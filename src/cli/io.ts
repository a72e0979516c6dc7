import type { Readable, Writable } from 'node:stream';
import { errorCode } from '../adapters/system/error-code.js';
import { UsageError } from '../errors.js';
import type { Log } from '../ports/log.js';

/** The world of a command: all of it that a command touches, but for the files that its arguments name. */
export interface Io {
  readonly stdin: Readable;
  /** Whether a person types there. */
  readonly stdinIsTTY: boolean;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly cwd: string;
  /** Whether stdout shows colours. */
  readonly colours: boolean;
  /** For what is nobody's mistake but ours. */
  readonly log: Log;
  /** Aborted when the command is asked to stop; whoever calls it takes care that it then does. Else it just dies. */
  stop(): AbortSignal;
}

/** Nobody reads any more what a command writes. It ends quietly then. */
export class OutputClosedError extends Error {}

/** A stream that is written to with back-pressure, and whose reader may go away at any time. */
export class Output {
  readonly isTTY: boolean;
  readonly #stream: Writable;
  #isClosed = false;

  constructor(stream: Writable, isTTY: boolean) {
    this.#stream = stream;
    this.isTTY = isTTY;
    stream.on('error', (error) => {
      this.#isClosed ||= isClosedError(error);
    });
  }

  /** Resolves when the system has taken the text. @throws OutputClosed when nobody reads it */
  async write(text: string): Promise<void> {
    if (this.#isClosed) throw new OutputClosedError();
    await new Promise<void>((resolve, reject) => {
      this.#stream.write(text, (error) => {
        if (!error) resolve();
        else if (isClosedError(error)) reject(new OutputClosedError());
        else reject(error);
      });
    });
  }

  /** Writes a line that may get lost: a word beside the work. */
  async writeLine(line: string): Promise<void> {
    await this.write(`${line}\n`).catch(() => undefined);
  }
}

const isClosedError = (error: Error): boolean =>
  ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(errorCode(error));

export const usageError = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
