import { readSync } from 'node:fs';

/**
 * The bytes of a file that had `size` of them, counted while they are read, since it may grow meanwhile.
 * @returns null if there are more than `max` @throws an errno error
 */
export function readWhole(fd: number, size: number, max: number): Buffer | null {
  // One byte more than there should be, so that the end of the file is seen without a second buffer.
  let buffer = Buffer.allocUnsafe(Math.min(size, max) + 1);
  let length = 0;
  for (;;) {
    const count = readSync(fd, buffer, length, buffer.length - length, null);
    length += count;
    if (length > max) return null;
    // As long as it was: that is the end, which need not be read for itself. Of a file that grows meanwhile, this is
    // what stood there at one moment.
    if (count === 0 || length === size) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], max + 1);
  }
}
