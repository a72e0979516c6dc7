import type { Readable, Writable } from 'node:stream';
import { errorCode } from '../adapters/system/error-code.js';
import type { Log } from '../ports/log.js';

/** The environment of a command: everything it uses except the files that its arguments name. */
export interface Io {
  readonly stdin: Readable;
  /** Whether stdin is a terminal. */
  readonly stdinIsTTY: boolean;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly cwd: string;
  /** The variables of the environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether stdout shows colours. */
  readonly colours: boolean;
  /** For internal errors. */
  readonly log: Log;
  /**
   * Aborted when the command should stop. A command that calls this must then stop; otherwise a signal ends the
   * process.
   */
  stop(): AbortSignal;
}

/** The reader of the output is gone. The command ends without a message. */
export class OutputClosedError extends Error {}

/** A stream with back-pressure whose reader may disappear at any time. */
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

  /**
   * Resolves when the system has accepted the text.
   * @throws OutputClosedError if the reader is gone
   */
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

  /** Writes a line that may get lost, such as progress. */
  async writeLine(line: string): Promise<void> {
    await this.write(`${line}\n`).catch(() => undefined);
  }
}

const isClosedError = (error: Error): boolean =>
  ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(errorCode(error));
