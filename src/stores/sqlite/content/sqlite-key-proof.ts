// What a ledger in SQLite says about the keys of its cases (stores/keys/case-key-guard.ts).

import type { Batch } from '../../../engine/ports/ledger/ledger-store.js';
import type { KeyedLedger, SealedContent } from '../../keys/case-key-guard.js';
import { artifactNumbersIn } from '../sqlite-blocks.js';
import type { SqliteConnection } from '../sqlite-binding.js';
import type { SqliteReader } from '../sqlite-reader.js';
import type { SqliteTrees } from '../sqlite-trees.js';
import type { SqliteArtifacts } from './sqlite-artifacts.js';

/** How many contents are read from the end to find one of a case. */
const NEWEST_MAX = 10_000;
/** Blocks that one query reads. */
const BLOCKS_PAGE = 16;

interface KeyProofParts {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
  readonly reader: SqliteReader;
  readonly trees: SqliteTrees;
}

const COLUMNS = 'case_id, sealed AS key_no, lower(hex(sha256)) AS sha256, bytes AS stored';

/** Compares the key folder with the ledger. @throws LedgerError LEDGER_CONFLICT */
export function bindKeyFolder({ db, artifacts, reader }: KeyProofParts): void {
  const newest = db.prepare(
    `SELECT ${COLUMNS} FROM artifacts WHERE case_id IS NOT NULL AND sealed > 0
     AND artifact_no > (SELECT ifnull(max(artifact_no), 0) FROM artifacts) - ${NEWEST_MAX}
     ORDER BY artifact_no DESC LIMIT 1`,
  );
  artifacts.guard.bind({ ...originOf({ db, reader }), newest: (newest.get() as SealedContent | undefined) ?? null });
}

/** The first entry of the log. */
export function originOf({ db, reader }: Pick<KeyProofParts, 'db' | 'reader'>): Omit<KeyedLedger, 'newest'> {
  const first = db.prepare('SELECT lower(hex(substr(leaf_hashes, 1, 32))) FROM blocks WHERE log_index = 0').pluck();
  const origin = (first.get() as string | undefined) ?? null;
  // A head that does not match is found later, and named.
  return { origin, isEmpty: origin === null && reader.head().size === 0 };
}

/** Before a batch: proves the keys of its cases that were not used yet. @throws LedgerError LEDGER_TAMPERED */
export function proveCaseKeys(parts: KeyProofParts, { trees }: Batch): void {
  const { guard } = parts.artifacts;
  const named = trees.flatMap(({ artifacts }) => artifacts.map(({ artifact }) => artifact.case_id));
  const case_ids = named.filter((case_id) => case_id !== null);
  for (const case_id of guard.unproven(case_ids)) guard.prove(case_id, newestOf(parts, case_id));
}

/** The newest content under a key of the case that was not erased, in the trees of the case. */
function newestOf({ db, artifacts, reader, trees }: KeyProofParts, case_id: string): SealedContent | null {
  const erased = artifacts.keys.lastErased(case_id);
  const find = db.prepare(`SELECT ${COLUMNS} FROM artifacts WHERE artifact_no = ? AND case_id = ? AND sealed > ?`);
  for (const { tree_id } of [...trees.ofCase(case_id)].reverse()) {
    for (let from: number | null = 0; from !== null;) {
      const { rows, next }: ReturnType<SqliteReader['history']> = reader.history(tree_id, from, BLOCKS_PAGE);
      const blocks = new Set(rows.map(({ block }) => block.artifacts));
      const numbers = [...blocks].flatMap((text) => (text === null ? [] : artifactNumbersIn(text)));
      for (const number of numbers.reverse()) {
        const found = find.get(number, case_id, erased) as SealedContent | undefined;
        if (found !== undefined) return found;
      }
      from = next;
    }
  }
  return null;
}
