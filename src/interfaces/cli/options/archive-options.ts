// Opens archive files that are read together with a home directory.

import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { hashFile } from '../../../system/files/hash-file.js';
import { openLineFile } from '../../../system/files/open-line-file.js';
import { LedgerError, usageError } from '../../../core/errors.js';
import { integratedLog } from '../../../runtime/ledger/integrated-log.js';
import { EMPTY_HEAD } from '../../../core/ledger/proof/merkle.js';
import type { LineFile } from '../../../engine/ports/ledger/line-file.js';
import {
  checkArchiveChain,
  joinLogs,
  sortArchives,
  type JoinedLog,
  type OpenedArchive,
} from '../../../runtime/ledger/joined-log.js';
import { openEvidence } from '../../../runtime/ledger/open-evidence.js';
import { countLines } from '../../../runtime/ledger/count-reads.js';
import { readLedgerVerifier } from '../../../home/ledger-key.js';
import type { ArgumentsOf, CommandOption } from '../command.js';
import { homeOf, type OpenLedger } from './folders.js';
import { type Io } from '../io.js';
import { progressFor } from '../progress-bar.js';
import { escapeText } from '../text/terminal.js';

export const ARCHIVE_OPTION = {
  name: 'archive',
  value: 'FILE',
  multiple: true,
  help: 'also read this output of `ledger archive`; may be repeated',
} as const satisfies CommandOption;

/**
 * Opens the archives that the arguments name, with the key of the home, for `work`.
 * @throws LedgerError LEDGER_TAMPERED for an incomplete archive or one of another key; UsageError
 */
export async function withOpenArchives<T>(
  args: ArgumentsOf<readonly [typeof ARCHIVE_OPTION]>,
  io: Io,
  work: (archives: readonly OpenedArchive[]) => Promise<T>,
): Promise<T> {
  const names = args.values.archive;
  const key = names.length === 0 ? null : readLedgerVerifier(homeOf(args, io).ledgerKey);
  if (names.length > 0 && key === null)
    throw usageError('this home directory has no ledger key, so it has no archives');
  const files: LineFile[] = [];
  const archives: OpenedArchive[] = [];
  try {
    for (const name of names) {
      const path = resolve(io.cwd, name);
      const file = await openLineFile(path);
      files.push(file);
      const label = `reading ${escapeText(basename(path))}`;
      const counted = countLines(file, progressFor(args, io), label, statSync(path).size);
      const evidence = await openEvidence(counted, key).catch((error: unknown) => {
        if (!(error instanceof LedgerError)) throw error;
        throw new LedgerError({ code: error.code, message: `${name}: ${error.message}`, cause: error });
      });
      progressFor(args, io).begin({ label: `hashing ${escapeText(basename(path))}`, unit: 'bytes', total: null });
      archives.push({ name, sha256: await hashFile(path), evidence });
    }
    return await work(archives);
  } finally {
    for (const file of files) await file.close();
  }
}

/**
 * The log together with its named archives.
 * @throws LedgerError LEDGER_TAMPERED for archives of another log
 */
export async function joinWholeLog(
  { store }: Pick<OpenLedger, 'store'>,
  archives: readonly OpenedArchive[],
): Promise<JoinedLog> {
  const parts = await store.archives.parts();
  const chain = sortArchives(archives);
  for await (const { message } of checkArchiveChain(chain, parts)) {
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
  return joinLogs(chain, integratedLog(store), parts.at(-1) ?? EMPTY_HEAD);
}
