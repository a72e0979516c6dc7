// The output of a command: read to its end, counted and hashed completely, and kept up to a limit. The bytes are not
// interpreted.

import { createHash } from 'node:crypto';
import { Socket } from 'node:net';

export interface OutputLimits {
  /** How many bytes are kept. */
  readonly output_max: number;
  /** Beyond this number of bytes, `onFlood` is called once. */
  readonly bytes_max: number;
  readonly onFlood: () => void;
}

export class CommandOutput {
  /** Resolves when the output is complete. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #hash = createHash('sha256');
  readonly #chunks: Uint8Array[] = [];
  readonly #limits: OutputLimits;
  #bytes = 0;
  #isCut = false;

  /** Owns `fd`, the non-blocking read end of a pipe. */
  constructor(fd: number, limits: OutputLimits) {
    this.#limits = limits;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.closed = new Promise((settle) => this.#socket.once('close', () => settle()));
    this.#socket.on('data', (chunk: Uint8Array) => this.#receive(chunk));
    // A pipe that fails is treated as ended and truncated.
    this.#socket.on('error', () => (this.#isCut = true));
  }

  /** Stops reading. */
  cut(): void {
    if (this.#socket.closed) return;
    this.#isCut = true;
    this.#socket.destroy();
  }

  /** The output so far. Call it once, at the end. */
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
    // A copy: a short remainder must not keep the whole chunk in memory.
    if (room > 0) this.#chunks.push(Uint8Array.prototype.slice.call(chunk, 0, room));
    if (!flooded && this.#bytes > bytes_max) onFlood();
  }
}
