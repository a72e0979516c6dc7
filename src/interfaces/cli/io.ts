import type { Readable, Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { errorCode } from '../../system/error-code.js';
import type { Log } from '../../engine/ports/log.js';
import type { ProgressReporter } from '../../engine/ports/progress.js';

/** The progress of one command, for the person at its terminal. */
export interface CommandProgress extends ProgressReporter {
  /** Removes the bar. Nothing is drawn any more: the command shows its result, or waits for requests. */
  close(): void;
}

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
  /** The progress bar on stderr, if that is a terminal. Commands use `progressFor`, which hides it with `--json`. */
  readonly progress: CommandProgress;
  /**
   * Calls `action` before a signal ends the process. @returns a function that cancels that
   */
  beforeSignal(action: () => void): () => void;
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
  #listener: (() => void) | null = null;

  constructor(stream: Writable, isTTY: boolean) {
    this.#stream = stream;
    this.isTTY = isTTY;
    stream.on('error', (error) => {
      this.#isClosed ||= isClosedError(error);
    });
  }

  /** The width of the terminal; undefined without one. */
  get columns(): number | undefined {
    const { columns } = this.#stream as Partial<WriteStream>;
    return columns === 0 ? undefined : columns;
  }

  /** Calls `listener` before each write, except `draw`. */
  onWrite(listener: () => void): void {
    this.#listener = listener;
  }

  /** Writes text that may get lost, at once. */
  draw(text: string): void {
    if (!this.#isClosed) this.#stream.write(text);
  }

  /**
   * Resolves when the system has accepted the text.
   * @throws OutputClosedError if the reader is gone
   */
  async write(text: string): Promise<void> {
    this.#listener?.();
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
