import { realpathSync, statSync } from 'node:fs';
import { SPEC_BYTES_MAX } from '../contract/session-spec.js';
import { UsageError } from '../../../core/errors.js';
import type { SpecFiles } from './spec-files.js';
import { readSmallFile } from '../../../system/files/small-file.js';

/** Specs in files of this machine. */
export const specFiles: SpecFiles = {
  resolve(path) {
    try {
      return realpathSync(path);
    } catch (cause) {
      throw unreadableError(path, cause);
    }
  },
  read(path) {
    let bytes: Uint8Array | null;
    try {
      bytes = readSmallFile(path, { bytesMax: SPEC_BYTES_MAX });
    } catch (cause) {
      throw unreadableError(path, cause);
    }
    if (bytes === null) throw unreadableError(path);
    return bytes;
  },
  stamp(path) {
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    } catch {
      // Deleted, in a folder without permission, or a circular link: no spec can be read from this path.
      return null;
    }
  },
};

const unreadableError = (path: string, cause?: unknown): UsageError =>
  new UsageError({ code: 'USAGE', message: `the spec ${JSON.stringify(path)} cannot be read`, cause });
