// Decisions of one batch that depend on each other are written together or not at all: one that has counted a step of
// another tree must not be written without that step. The store compares each append with its own checks, so all of
// them get the checks of all.

import type { SandboxAmount } from '../../../core/contract/run/effect.js';
import type { QuotaChange } from '../../../engine/ports/ledger/shared-store.js';

/**
 * @param all what the appends of a batch change and depend on
 * @param isCounter whether a case id is that of a counter
 * @returns the same, with additional checks for the appends that depend on a counter of another append
 */
export function joinChecks(
  all: readonly (readonly QuotaChange[])[],
  isCounter: (case_id: string) => boolean,
): readonly (readonly QuotaChange[])[] {
  const joined = [...all];
  for (const group of groupsOf(all, isCounter)) {
    const checks = mergeChecks(group.flatMap((index) => all[index] ?? []).filter(({ isChecked }) => isChecked));
    for (const index of group) {
      const own = all[index] ?? [];
      const depends = own.some(({ case_id, isChecked }) => isChecked && isCounter(case_id));
      if (depends) joined[index] = [...own, ...checks];
    }
  }
  return joined;
}

/** The appends that have counters in common, also through others; none alone. */
function groupsOf(
  all: readonly (readonly QuotaChange[])[],
  isCounter: (case_id: string) => boolean,
): readonly (readonly number[])[] {
  const groups = new Map<string, Set<number>>();
  for (const [index, changes] of all.entries()) {
    const ids = changes.map(({ case_id }) => case_id).filter(isCounter);
    if (ids.length === 0) continue;
    const met = new Set(ids.flatMap((id) => groups.get(id) ?? []));
    const group = new Set([index, ...[...met].flatMap((other) => [...other])]);
    for (const [id, other] of groups) if (met.has(other)) groups.set(id, group);
    for (const id of ids) groups.set(id, group);
  }
  return [...new Set(groups.values())].filter(({ size }) => size > 1).map((group) => [...group]);
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
