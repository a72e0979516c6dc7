import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import type { NoteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import type { LedgerLocation } from '../../../src/home/ledger-location.js';
import { erasureSealOf, openHome } from '../../../src/home/home.js';
import { readLedgerSigner } from '../../../src/home/ledger-key.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

/** Writes the bundle of a ledger. @returns what is wrong with it for a verifier with the key `trusted`; or null */
export async function bundleProblem(location: LedgerLocation, trusted: NoteVerifier): Promise<string | null> {
  const store = await openReader(location);
  const signer = readLedgerSigner(location.paths.ledgerKey);
  if (signer === null) throw new Error('no key');
  const lines: string[] = [];
  await writeEvidence(store, await store.head(), signer, (line) => Promise.resolve(void lines.push(line)));
  await store.close();
  const path = join(tempFolder('bundle'), 'bundle');
  writeFileSync(path, lines.join(''));
  const file = await openLineFile(path);
  try {
    const verdict = await verifyEvidence(await openEvidence(file, trusted), { replay: false });
    return verdict.verdict === 'refused' ? verdict.problems.map(({ message }) => message).join() : null;
  } finally {
    await file.close();
  }
}

async function openReader({ paths, postgres }: LedgerLocation) {
  const erasureSeal = erasureSealOf(paths, { readOnly: true });
  if (postgres !== null)
    return openPostgresStore({ ...postgres, caseKeysDir: paths.caseKeys, readOnly: true, erasureSeal });
  const { store, externalHeadStore } = openHome(paths, { readOnly: true });
  await externalHeadStore.close();
  return store;
}
