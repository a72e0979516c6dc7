import { existsSync } from 'node:fs';
import { CaseKeys } from '../../../stores/keys/case-keys.js';
import { openSqliteCopySource } from '../../../stores/sqlite/copy/sqlite-copy-source.js';
import { lockFolder } from '../../../stores/sqlite/writer-lock.js';
import { Sequencer } from '../../../engine/sequencer.js';
import { LedgerError, usageError } from '../../../core/errors.js';
import { checkExternalHead } from '../../../core/ledger/verification/check-external-head.js';
import type { LedgerCopySource } from '../../../engine/ports/ledger/ledger-copy.js';
import type { LedgerStore } from '../../../engine/ports/ledger/ledger-store.js';
import { erasureSealOf, openHead, openHome, sqliteFiles } from '../../../home/home.js';
import type { LedgerLocation, PostgresLocation } from '../../../home/ledger-location.js';
import { readCopiedMark, removeCopiedMark, writeCopiedMark } from '../../../home/copy-marker.js';

/** A closed ledger that this process has locked, and its rows. */
export interface OpenCopySource {
  readonly store: LedgerStore;
  readonly source: LedgerCopySource;
  /** The name of the copy in which the ledger continues; null if it was not copied. */
  readonly copiedTo: string | null;
  /** Marks the ledger as copied, so that nothing writes to it any more; null removes the mark. */
  readonly mark: (target: string | null) => Promise<void>;
  /** @throws LedgerError LEDGER_UNAVAILABLE if the lock was lost at any time since the opening */
  readonly confirmLock: () => Promise<void>;
  close(): Promise<void>;
}

type CloseStep = () => unknown;

/**
 * Takes the writer lock of a ledger, integrates what is pending, and compares the ledger with its head file.
 * @throws LedgerError LEDGER_LOCKED while another process has it open; LEDGER_BELOW_HEAD, LEDGER_TAMPERED for another
 * key or another log; LEDGER_ARCHIVED or LEDGER_UNAVAILABLE if it cannot be copied
 * @throws UsageError if there is no ledger
 */
export async function openCopySource(location: LedgerLocation): Promise<OpenCopySource> {
  const opened: CloseStep[] = [];
  const close = async (): Promise<void> => {
    for (const step of opened.splice(0).reverse()) await step();
  };
  try {
    const { store, source } = await openStores(location, opened);
    const copiedTo = await readMark(location);
    await new Sequencer(store, () => undefined).run();
    const { externalHeadStore } = openHead(location.paths, { readOnly: true });
    await checkExternalHead(store, externalHeadStore, { acceptMissing: location.postgres !== null });
    await externalHeadStore.close();
    const obstacle = await source.findObstacle();
    if (obstacle !== null) {
      throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `this ledger cannot be copied: ${obstacle}` });
    }
    // The lock of SQLite is a file of this process; that of PostgreSQL belongs to a connection.
    const confirmLock = async (): Promise<void> => {
      if (location.postgres !== null) await store.acquire();
    };
    const mark = (target: string | null): Promise<void> => writeMark(location, target);
    return { store, source, copiedTo, mark, confirmLock, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The name of the copy of a ledger whose writer lock the caller has; null if it was not copied. */
async function readMark({ paths, postgres }: LedgerLocation): Promise<string | null> {
  if (postgres === null) return readCopiedMark(paths.home);
  const { readCopied } = await import('../../../stores/postgres/postgres-tables.js');
  return readCopied({ ...postgres, readOnly: false });
}

/** See `OpenCopySource.mark`. */
async function writeMark({ paths, postgres }: LedgerLocation, target: string | null): Promise<void> {
  if (postgres !== null) {
    const { writeCopied } = await import('../../../stores/postgres/postgres-tables.js');
    await writeCopied({ ...postgres, readOnly: false }, target);
  } else if (target === null) await removeCopiedMark(paths.home);
  else writeCopiedMark(paths.home, target);
}

type SourceStores = Pick<OpenCopySource, 'store' | 'source'>;

async function openStores({ paths, postgres }: LedgerLocation, opened: CloseStep[]): Promise<SourceStores> {
  const keys = new CaseKeys(paths.caseKeys, erasureSealOf(paths, { readOnly: true }));
  if (postgres !== null) return openPostgresStores({ paths, postgres }, keys, opened);
  const { store, externalHeadStore } = openHome(paths, { readOnly: false, isCopySource: true });
  opened.push(
    () => store.close(),
    () => externalHeadStore.close(),
  );
  await store.acquire();
  const { file, artifactsDir } = sqliteFiles(paths);
  const source = openSqliteCopySource({ file, artifactsDir, keys });
  opened.push(() => source.close());
  return { store, source };
}

async function openPostgresStores(
  { paths, postgres }: LedgerLocation & { readonly postgres: PostgresLocation },
  keys: CaseKeys,
  opened: CloseStep[],
): Promise<SourceStores> {
  if (!existsSync(paths.keys)) throw usageError(`${paths.home} has no key folder: name the folder of this ledger`);
  const [{ openPostgresSourceStore }, { openPostgresCopySource }] = await Promise.all([
    import('../../../stores/postgres/postgres-ledger-store.js'),
    import('../../../stores/postgres/copy/postgres-copy-source.js'),
  ]);
  const lock = lockFolder(paths.state);
  opened.push(() => lock.release());
  const erasureSeal = erasureSealOf(paths, { readOnly: false });
  const store = await openPostgresSourceStore({ ...postgres, caseKeysDir: paths.caseKeys, erasureSeal });
  opened.push(() => store.close());
  await store.acquire();
  const source = openPostgresCopySource({ ...postgres, keys });
  opened.push(() => source.close());
  return { store, source };
}
