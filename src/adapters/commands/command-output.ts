// What a command prints: read to its end, counted and hashed as a whole, and kept up to a limit. Nothing of it is
// looked at: it may be anything.

import { createHash } from 'node:crypto';
import { Socket } from 'node:net';

export interface OutputLimits {
  /** What is kept. */
  readonly output_max: number;
  /** Beyond this, `onFlood` is called, once. */
  readonly bytes_max: number;
  readonly onFlood: () => void;
}

export class CommandOutput {
  /** Resolves when there can be no more of it. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #hash = createHash('sha256');
  readonly #chunks: Uint8Array[] = [];
  readonly #limits: OutputLimits;
  #bytes = 0;
  #isCut = false;

  /** Owns `fd`, the reading end of a pipe that does not wait. */
  constructor(fd: number, limits: OutputLimits) {
    this.#limits = limits;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.closed = new Promise((settle) => this.#socket.once('close', () => settle()));
    this.#socket.on('data', (chunk: Uint8Array) => this.#receive(chunk));
    // A pipe that cannot be read any more has ended, and not all of it is there.
    this.#socket.on('error', () => (this.#isCut = true));
  }

  /** Reads no further. */
  cut(): void {
    if (this.#socket.closed) return;
    this.#isCut = true;
    this.#socket.destroy();
  }

  /** What was printed until now. To be asked once, at the end. */
  result() {
    const output = Buffer.concat(this.#chunks);
    return {
      output,
      output_sha256: this.#hash.digest('hex'),
      output_bytes: this.#bytes,
      truncated: this.#isCut || output.length < this.#bytes,
    };
  }

  #receive(chunk: Uint8Array): void {
    const { output_max, bytes_max, onFlood } = this.#limits;
    const room = output_max - this.#bytes;
    const flooded = this.#bytes > bytes_max;
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    // A copy: a short rest must not hold on to the whole chunk.
    if (room > 0) this.#chunks.push(Uint8Array.prototype.slice.call(chunk, 0, room));
    if (!flooded && this.#bytes > bytes_max) onFlood();
  }
}
