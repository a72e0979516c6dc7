import { clearScratch } from '../../adapters/commands/command-scratch.js';
import { checkExternalHead } from '../../ledger/verification/check-external-head.js';
import { checkArchives } from '../../ledger/verification/check-archives.js';
import type { Log } from '../../ports/log.js';
import type { RecordEffects } from '../effects/record-effects.js';
import type { StorageEnvironment } from '../turnpike-options.js';

/** What is checked and made ready, at an opening and at each restart, between becoming the writer and recovery. */
export function createLedgerChecks(
  environment: StorageEnvironment,
  records: RecordEffects,
  log: Log,
): () => Promise<void> {
  const { home, state = home, store, anchor } = environment;
  let isStarted = false;
  return async () => {
    await checkArchives(store, anchor);
    await checkExternalHead(store, anchor, { acceptMissing: !isStarted && environment.acceptMissingHead === true });
    await records.open();
    if ((await anchor.read()) === null) await writeFirstHead(environment, log);
    if (!isStarted) await environment.signHeads?.();
    isStarted = true;
    // This process alone uses the local state by now, and no effect runs: no command uses a scratch folder.
    if (state !== null) await clearScratch(state.scratch, log);
  };
}

/** An empty ledger has none where its creation was interrupted. Any other without one was accepted just now. */
async function writeFirstHead({ store, anchor }: StorageEnvironment, log: Log): Promise<void> {
  const head = await store.head();
  const { size, root } = head;
  if (size > 0) log.warn('no head was stored on this machine: the head of the ledger is accepted', { size, root });
  await anchor.write(head);
}
