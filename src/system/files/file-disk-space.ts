import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DiskSpace, FreeSpace } from '../../engine/ports/disk-space.js';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_TRUNC, O_WRONLY } = constants;
const CHUNK_BYTES = 262_144;
/** Free bytes above which a measurement is reused, and for how long, in ms. */
const MUCH_BYTES = 4_294_967_296;
const MEASURED_MS = 50;
/** Does not wait for a FIFO at this path, and follows no link. */
const APPENDING = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
const PROBING = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK;

/** The file system of `file`. The file reserves space by its size; its content has no meaning. */
export const diskSpace = (file: string): DiskSpace => ({
  measure: measuring(dirname(file)),
  reservedBytes: () => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
  reserve: (bytes) => reserveFile(file, bytes),
  release: () => {
    rmSync(file, { force: true });
  },
  isWritable: () => acceptsWrite(`${file}.probe`),
});

/** Writes a byte: the permissions and the mount options do not show that a disk has become read-only after an error. */
async function acceptsWrite(probe: string): Promise<boolean> {
  try {
    const file = await open(probe, PROBING, 0o600);
    try {
      await file.write('1');
    } finally {
      await file.close();
    }
    await rm(probe, { force: true });
    return true;
  } catch {
    return false;
  }
}

/** With much free space a measurement is reused briefly: no disk fills that fast. */
function measuring(folder: string): () => FreeSpace | null {
  let last: { readonly space: FreeSpace; readonly at: number } | null = null;
  return function measure() {
    const now = performance.now();
    if (last !== null && now - last.at < MEASURED_MS) return last.space;
    const space = measureFreeSpace(folder);
    last = space !== null && space.free >= MUCH_BYTES ? { space, at: now } : null;
    return space;
  };
}

function measureFreeSpace(folder: string): FreeSpace | null {
  try {
    const { bavail, blocks, bsize } = statfsSync(folder);
    return { free: bavail * bsize, total: blocks * bsize };
  } catch {
    return null;
  }
}

function reserveFile(file: string, bytes: number): boolean {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(file, APPENDING, 0o600);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw new Error(`${file} is no regular file`);
    const { size } = stat;
    if (size > bytes) ftruncateSync(descriptor, bytes);
    for (let at = size; at < bytes; at += CHUNK_BYTES)
      writeSync(descriptor, incompressibleBytes(at, Math.min(CHUNK_BYTES, bytes - at)));
    return true;
  } catch {
    rmSync(file, { force: true });
    return false;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** Pseudorandom bytes: zeros would reserve nothing on a file system that compresses or deduplicates. */
function incompressibleBytes(seed: number, bytes: number): Buffer {
  const words = new Int32Array(Math.ceil(bytes / 4));
  let state = (seed ^ 0x9e3779b9) | 1;
  for (let place = 0; place < words.length; place += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[place] = state;
  }
  return Buffer.from(words.buffer, 0, bytes);
}
