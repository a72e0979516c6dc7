import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { UsageError } from '../errors.js';
import type { LineFile } from '../ports/line-file.js';
import { errorCode } from './error-code.js';

const NEWLINE = 0x0a;
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/** @throws UsageError where there is no such file */
export async function openLineFile(path: string): Promise<LineFile> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw usage(`${path}: ${errorCode(error) === 'ENOENT' ? 'there is no such file' : 'it cannot be read'}`);
  });
  return {
    async *lines() {
      let [offset, length] = [0, 0];
      let parts: Buffer[] = [];
      for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
        let start = 0;
        for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
          parts.push(chunk.subarray(start, end));
          length += end - start;
          yield { bytes: Buffer.concat(parts), place: { offset, length } };
          offset += length + 1;
          [parts, length, start] = [[], 0, end + 1];
        }
        parts.push(chunk.subarray(start));
        length += chunk.length - start;
        if (length > LINE_BYTES_MAX) throw usage(`${path}: a line of more than ${LINE_BYTES_MAX} bytes`);
      }
      if (length > 0) throw usage(`${path}: it ends in the middle of a line`);
    },
    read: async ({ offset, length }) => {
      const bytes = Buffer.alloc(length);
      const { bytesRead } = await file.read(bytes, 0, length, offset);
      return bytes.subarray(0, bytesRead);
    },
    close: () => file.close(),
  };
}

const usage = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
