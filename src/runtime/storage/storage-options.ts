import { usageError } from '../../core/errors.js';
import type { FreeSpace } from '../../engine/ports/disk-space.js';

/**
 * Limits of the disk space that the ledger uses: whole numbers of bytes, 1 or more. A budget counts what was recorded
 * since the opening, with an allowance for what SQLite adds.
 */
export interface StorageOptions {
  /** Budget of one run tree. Default 1 GiB. */
  readonly runBytes?: number;
  /** Budget of all run trees of a case. Default 16 GiB. */
  readonly caseBytes?: number;
  /** Budget of all that one actor starts, proposes or reads within an hour: some 400,000 steps. Default 8 GiB. */
  readonly actorBytes?: number;
  /** With less free space no run starts, and no content over 16 KiB is recorded. Default 5 %, at most 256 MiB. */
  readonly freeBytesMin?: number;
  /** Reserved for recording what is in flight when the disk is full. Default 1 % of it, at most 4 MiB. */
  readonly reservedBytes?: number;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** The default budgets. */
export const STORAGE_DEFAULTS = { runBytes: GIB, caseBytes: 16 * GIB, actorBytes: 8 * GIB } as const;
const FREE_SPACE = { share: 0.05, bytesMax: 256 * MIB } as const;
const RESERVED_SPACE = { share: 0.01, bytesMax: 4 * MIB } as const;

const OPTION_NAMES = ['runBytes', 'caseBytes', 'actorBytes', 'freeBytesMin', 'reservedBytes'] as const;

/** @throws UsageError for an invalid number of bytes */
export function validateStorageOptions(options: StorageOptions): StorageOptions {
  for (const name of OPTION_NAMES) {
    const value = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw usageError(`storage.${name}: a whole number of bytes, 1 or more`);
  }
  return options;
}

/** The low-water mark and the reserve of a file system. */
export const waterMarksOf = ({ freeBytesMin, reservedBytes }: StorageOptions, { total }: FreeSpace) => ({
  low: freeBytesMin ?? Math.min(FREE_SPACE.bytesMax, Math.floor(total * FREE_SPACE.share)),
  reserved: reservedBytes ?? Math.min(RESERVED_SPACE.bytesMax, Math.floor(total * RESERVED_SPACE.share)),
});
