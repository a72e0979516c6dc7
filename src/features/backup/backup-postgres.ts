import { CaseKeys } from '../../stores/keys/case-keys.js';
import { createSqliteCopyTarget } from '../../stores/sqlite/copy/sqlite-copy-target.js';
import { withoutWal } from '../../stores/sqlite/copy/sqlite-backup.js';
import type { ProgressReporter } from '../../engine/ports/progress.js';
import { Sequencer } from '../../engine/sequencer.js';
import { copyLedger } from './copy/copy-ledger.js';
import type { LedgerLocation, PostgresLocation } from '../../home/ledger-location.js';
import type { HomePaths } from '../../home/home-paths.js';
import { erasureSealOf, sqliteFiles } from '../../home/home.js';

/** Copies a ledger in PostgreSQL to an SQLite ledger, as of one moment. Workers may be writing. @throws LedgerError */
export async function backupPostgres(
  { paths, postgres }: LedgerLocation & { readonly postgres: PostgresLocation },
  copy: HomePaths,
  progress: ProgressReporter,
): Promise<void> {
  const { openPostgresBackupSource } = await import('../../stores/postgres/copy/postgres-backup-source.js');
  const keys = new CaseKeys(paths.caseKeys, erasureSealOf(paths, { readOnly: true }));
  const ledger = openPostgresBackupSource({ url: postgres.url, schema: postgres.schema, keys });
  try {
    const sequencer = new Sequencer(ledger.log, () => undefined);
    // Once before, so that little is pending while commits wait.
    await sequencer.run();
    const source = await ledger.snapshot(() => sequencer.run());
    const { file, artifactsDir } = sqliteFiles(copy);
    const target = createSqliteCopyTarget({ file, artifactsDir });
    try {
      await copyLedger(source, null, target, { progress });
    } finally {
      await target.close();
      await source.close();
    }
    withoutWal(file);
  } finally {
    await ledger.close();
  }
}
