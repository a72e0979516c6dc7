import { clearScratch } from '../adapters/command-scratch.js';
import { checkAnchor } from '../ledger/check-anchor.js';
import { checkArchives } from '../ledger/check-archives.js';
import type { Log } from '../ports/log.js';
import type { RecordEffects } from './effects/record-effects.js';
import type { Ground } from './turnpike-options.js';

/** What is checked and made ready, at an opening and at each restart, between becoming the writer and recovery. */
export function ledgerChecks(ground: Ground, records: RecordEffects, log: Log): () => Promise<void> {
  const { home, state = home, store, anchor } = ground;
  let started = false;
  return async () => {
    await checkArchives(store, anchor);
    await checkAnchor(store, anchor, { acceptMissing: !started && ground.acceptMissingHead === true });
    await records.open();
    // A making that was cut short leaves none.
    if ((await anchor.read()) === null) await anchor.write(await store.head());
    if (!started) await ground.signHeads?.();
    started = true;
    // This process alone uses the local state by now, and no effect is running: no command of another one is.
    if (state !== null) await clearScratch(state.scratch, log);
  };
}
