import type { CaseKeyTable } from '../../../engine/ports/ledger/case-key-table.js';
import type { CaseKeys } from '../../keys/case-keys.js';
import type { SqliteWriter } from '../sqlite-writer.js';
import { countCaseContents, removeResealed, resealPart } from './sqlite-reseal-contents.js';

/** What the table uses of a store. */
export interface SqliteCaseKeyParts {
  readonly keys: CaseKeys;
  readonly writer: () => SqliteWriter;
  /** Runs the work, and translates its errors. */
  readonly attempt: <T>(work: () => T) => Promise<T>;
}

/** The keys of the cases of an SQLite ledger. */
export const sqliteCaseKeyTable = ({ keys, writer, attempt }: SqliteCaseKeyParts): CaseKeyTable => ({
  cases: () => keys.cases().filter((case_id) => keys.has(case_id)),
  unfinished: () => keys.unfinishedReplacements(),
  begin: (case_id, by) =>
    attempt(() => writer().onContents((parts) => keys.replace(case_id, countCaseContents(parts, case_id), by))),
  reseal: (case_ids, from) =>
    attempt(() => writer().onContents((parts, inTransaction) => resealPart(parts, case_ids, from, inTransaction))),
  finish: (case_ids) =>
    attempt(() => {
      writer().onContents((parts) => removeResealed(parts, case_ids));
      for (const case_id of case_ids) keys.destroyReplaced(case_id);
    }),
});
