import { clearScratch } from '../sandbox/commands/command-scratch.js';
import { checkExternalHead } from '../core/ledger/verification/check-external-head.js';
import { checkArchives } from '../core/ledger/verification/check-archives.js';
import type { Log } from '../engine/ports/log.js';
import { refuseCopied } from '../home/copy-marker.js';
import type { RecordEffects } from '../runtime/effects/record-effects.js';
import type { StorageEnvironment } from './turnpike-options.js';

/** What an opening, and each restart, checks and prepares after the process becomes the writer and before recovery. */
export function createLedgerChecks(
  environment: StorageEnvironment,
  records: RecordEffects,
  log: Log,
): () => Promise<void> {
  const { home, state = home, store, externalHeadStore } = environment;
  let isStarted = false;
  return async () => {
    // Again, now that this process is the writer: a copy may have ended since the home was opened.
    if (home !== null) refuseCopied(home.home);
    await checkArchives(store, externalHeadStore);
    await checkExternalHead(store, externalHeadStore, {
      acceptMissing: !isStarted && environment.acceptMissingHead === true,
    });
    await records.open();
    if ((await externalHeadStore.read()) === null) await writeFirstHead(environment, log);
    if (!isStarted) await environment.signHeads?.();
    isStarted = true;
    // By now only this process uses the local state, and no effect runs: no command uses a scratch folder.
    if (state !== null) await clearScratch(state.scratch, log);
  };
}

/** An empty ledger has no head if its creation was interrupted. Any other ledger without one was accepted above. */
async function writeFirstHead({ store, externalHeadStore }: StorageEnvironment, log: Log): Promise<void> {
  const head = await store.head();
  const { size, root } = head;
  if (size > 0) log.warn('no head was stored on this machine: the head of the ledger is accepted', { size, root });
  await externalHeadStore.write(head);
}
