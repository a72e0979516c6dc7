/** Collects bytes; positions are those of SQL, which begin at 1. */
export class ByteColumn {
  readonly at: number[] = [];
  readonly lengths: number[] = [];
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  add(bytes: Uint8Array): void {
    this.at.push(this.#length + 1);
    this.lengths.push(bytes.byteLength);
    this.#parts.push(bytes);
    this.#length += bytes.byteLength;
  }

  toBuffer(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }
}
