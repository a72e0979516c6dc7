/** Collects bytes; positions are those of SQL, which begin at 1. */
export class ByteColumn {
  readonly at: number[] = [];
  readonly lengths: number[] = [];
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** @returns where the bytes are, and how many */
  add(bytes: Uint8Array): { readonly at: number; readonly bytes: number } {
    const place = { at: this.#length + 1, bytes: bytes.byteLength };
    this.at.push(place.at);
    this.lengths.push(place.bytes);
    this.#parts.push(bytes);
    this.#length += bytes.byteLength;
    return place;
  }

  toBuffer(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }
}
