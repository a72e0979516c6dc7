// Decisions of one batch that depend on each other are written together or not at all: one that has counted a step of
// another tree must not be written without that step. The store compares each append with its own checks, so all of
// them get the checks of all.

import type { SandboxAmount } from '../../contract/run/effect.js';
import type { QuotaChange } from '../../ports/ledger/shared-store.js';

/**
 * All counters have one version, so all appends that change them depend on each other.
 * @param all what the appends of a batch change and depend on
 * @param isCounter whether a case id is that of the counters
 * @returns the same, with the checks of all such appends for each that depends on the counters
 */
export function joinChecks(
  all: readonly (readonly QuotaChange[])[],
  isCounter: (case_id: string) => boolean,
): readonly (readonly QuotaChange[])[] {
  const counted = all.filter((changes) => changes.some(({ case_id }) => isCounter(case_id)));
  if (counted.length < 2) return all;
  const checks = mergeChecks(counted.flat().filter(({ isChecked }) => isChecked));
  const depends = (own: readonly QuotaChange[]): boolean =>
    own.some(({ case_id, isChecked }) => isChecked && isCounter(case_id));
  return all.map((own) => (depends(own) ? [...own, ...checks] : own));
}

/** One check for each case that holds only if all of these hold. */
function mergeChecks(checks: readonly QuotaChange[]): readonly QuotaChange[] {
  const merged = new Map<string, QuotaChange>();
  for (const check of checks) {
    const other = merged.get(check.case_id);
    merged.set(check.case_id, other === undefined ? toCheck(check) : strictest(other, toCheck(check)));
  }
  return [...merged.values()];
}

const NONE: SandboxAmount = { bytes: 0, files: 0 };

const toCheck = ({ total, room, ...change }: QuotaChange): QuotaChange => ({
  ...change,
  total: NONE,
  room: room === null ? null : { bytes: total.bytes + room.bytes, files: total.files + room.files },
  reserved: [],
  released: [],
});

const strictest = (one: QuotaChange, other: QuotaChange): QuotaChange => ({
  ...one,
  version: one.version === other.version ? one.version : UNKNOWN_VERSION,
  room: one.room === null || other.room === null || one.version !== other.version ? null : least(one.room, other.room),
});

/** A version that no case has. */
const UNKNOWN_VERSION = '?';

const least = (one: SandboxAmount, other: SandboxAmount): SandboxAmount => ({
  bytes: Math.min(one.bytes, other.bytes),
  files: Math.min(one.files, other.files),
});
