// Splits untrusted bytes into lines of text, with a limit for a line without an end.

const LINE_FEED = 0x0a;
const BYTES_FIRST = 65_536;

/** Lines end with a line feed, which is removed. */
export class LineBuffer {
  readonly #bytesMax: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #bytes = Buffer.allocUnsafe(BYTES_FIRST);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that end in this piece, in order. @throws if a line is too long or not UTF-8 */
  push(piece: Uint8Array): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, from)) {
      this.#append(piece.subarray(from, end));
      lines.push(this.takeRest());
      from = end + 1;
    }
    this.#append(piece.subarray(from));
    return lines;
  }

  /** Returns and removes the text after the last line feed. @throws if it is not UTF-8 */
  takeRest(): string {
    const text = this.#decoder.decode(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return text;
  }

  /** Copies the piece; doubles the buffer when it is full, so that single bytes cost no more than large pieces. */
  #append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) throw new Error(`a message has more than ${this.#bytesMax} bytes`);
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#bytesMax, Math.max(length, this.#bytes.length * 2)));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }
}
