// Replaces the keys that encrypt the contents of cases (decision 0022).
//
//   C1. A rotation counts from the moment at which the key folder has its note (K5 in case-keys.ts). New content is
//       encrypted with the new key from then on, and the new key also opens what the old one has encrypted.
//   C2. The contents are encrypted again in parts, with other work in between. After a crash the rotation is
//       unfinished: everything can be read and written, and the next rotation of the case finishes it.
//   C3. The file of the old key is destroyed last, when nothing in the ledger is under it.

import { CaseId, Identifier } from '../../core/contract/shapes.js';
import { ledgerEventTreeId } from '../../engine/restore-history.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { CaseKeyReplacement, CaseKeyTable } from '../../engine/ports/ledger/case-key-table.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import type { Operator } from '../../runtime/operator-acts.js';
import { validateActor, validateField } from '../../runtime/agents/caller-input.js';
import { endRotationTree, recordRotation, ROTATED, type RecordParts } from './record-rotation.js';

/** Which keys to rotate, and who does it. */
export interface RotateCaseKeysOptions extends Operator {
  /** The case whose key is replaced. Null: every case that has a key. */
  readonly case: string | null;
  readonly role: string;
  /** Receives how many contents are encrypted again. @default none */
  readonly progress?: ProgressReporter;
}

/** A finished rotation of the key of a case. Time, person and role are those of the attempt that began it. */
export interface RotatedCaseKey extends CaseKeyReplacement {
  /** Whether an earlier attempt began it: then the key is the one that this attempt made. */
  readonly resumed: boolean;
}

export interface CaseKeyRotations {
  /** By case. */
  readonly rotations: readonly RotatedCaseKey[];
  /** The contents that were encrypted again. */
  readonly resealed: number;
}

export interface CaseRotationParts extends RecordParts {
  readonly engine: Pick<TreeEngine, 'submit' | 'peek' | 'exclusively'>;
  readonly store: Pick<LedgerStore, 'caseKeys' | 'marks'>;
  readonly clock: Clock;
}

/** The tree that records the replacement of this key. */
export const caseRotationTreeId = (case_id: string, key_no: number): string =>
  ledgerEventTreeId(`turnpike case key rotation ${case_id} ${key_no}`);

/**
 * Replaces the key of one case, or of all. Run trees of the case may be live: no content changes.
 * @throws UsageError for a case without a key; LedgerError: then repeat it, which finishes what has begun
 */
export async function rotateCaseKeys(
  parts: CaseRotationParts,
  options: RotateCaseKeysOptions,
): Promise<CaseKeyRotations> {
  const { progress = NO_PROGRESS } = options;
  const [by, role] = [validateActor(options.actor), validateField('role', Identifier, options.role)];
  if (/\p{Cc}/u.test(by)) throw usageError('actor: no control characters');
  const { engine, store, clock } = parts;
  const table = store.caseKeys;
  if (table === undefined) throw usageError('this ledger does not encrypt contents, so it has no keys of cases');
  const case_ids = casesOf(table, options.case);
  if (case_ids.length === 0) return { rotations: [], resealed: 0 };
  const begun = new Map(table.unfinished().map((replacement) => [replacement.case_id, replacement]));
  const rotations: RotatedCaseKey[] = [];
  for (const case_id of case_ids) {
    const known = begun.get(case_id);
    const at = new Date(clock.now()).toISOString();
    const replacement = known ?? (await engine.exclusively(() => table.begin(case_id, { at, by, role })));
    rotations.push({ ...replacement, resumed: known !== undefined });
    await record(parts, replacement);
  }
  const total = rotations.reduce((sum, { contents }) => sum + contents, 0);
  progress.begin({ label: 'encrypting contents again', unit: 'contents', total });
  let resealed = 0;
  for (let from: number | null = 0; from !== null;) {
    const start: number = from;
    const part = await engine.exclusively(() => table.reseal(case_ids, start));
    progress.advance(part.contents);
    resealed += part.contents;
    from = part.next;
  }
  await engine.exclusively(() => table.finish(case_ids));
  progress.end();
  return { rotations, resealed };
}

function casesOf(table: CaseKeyTable, one: string | null): readonly string[] {
  const case_id = one === null ? null : validateField('case', CaseId, one);
  const cases = table.cases();
  if (case_id === null) return cases;
  if (cases.includes(case_id)) return [case_id];
  throw usageError(`the case ${case_id} has no key: it has no content, or its content was erased`);
}

/** Does nothing if an earlier attempt has recorded it. */
async function record(parts: CaseRotationParts, replacement: CaseKeyReplacement): Promise<void> {
  const { case_id, key_no, contents, by, role } = replacement;
  const tree_id = caseRotationTreeId(case_id, key_no);
  const [mark] = await parts.store.marks([{ tree_id, input_id: ROTATED }]);
  if (mark == null) {
    const correlation_id = `case-key-rotation-${case_id}-${key_no}`;
    const rotation = { purpose: 'case', case_id, key_no, contents } as const;
    await recordRotation(parts, { tree_id, correlation_id, rotation, actor: by, role });
  }
  await endRotationTree(parts, tree_id);
}
