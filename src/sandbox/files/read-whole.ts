import { readSync } from 'node:fs';

/**
 * Reads a file that had `size` bytes; counts while reading, because the file may grow.
 * @returns null if there are more than `max` bytes @throws an errno error
 */
export function readWhole(fd: number, size: number, max: number): Buffer | null {
  // One byte more than expected, so that the end of the file is seen without a second buffer.
  let buffer = Buffer.allocUnsafe(Math.min(size, max) + 1);
  let length = 0;
  for (;;) {
    const count = readSync(fd, buffer, length, buffer.length - length, null);
    length += count;
    if (length > max) return null;
    // At the expected length the read ends without looking for the end of the file. For a file that grows, this is its
    // content at one point in time.
    if (count === 0 || length === size) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], max + 1);
  }
}
