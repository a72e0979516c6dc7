import { usageError } from '../../core/errors.js';

const NEWLINE = 0x0a;

/**
 * The lines of a byte stream, without their newline and not decoded. Text after the last newline is a line unless it is
 * empty. Memory: one line and one chunk.
 * @throws UsageError for a line of more than `bytes_max` bytes
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>, bytes_max: number): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let length = 0;
  let lines = 0;
  const addPart = (part: Uint8Array): void => {
    length += part.byteLength;
    if (length > bytes_max) {
      throw usageError(`line ${lines + 1} has more than ${bytes_max} bytes`);
    }
    parts.push(part);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      addPart(chunk.subarray(start, end));
      const line = parts.length === 1 ? parts[0] : undefined;
      yield line ?? Buffer.concat(parts);
      lines += 1;
      parts = [];
      length = 0;
      start = end + 1;
    }
    if (start < chunk.byteLength) addPart(chunk.subarray(start));
  }
  if (length > 0) yield Buffer.concat(parts);
}
