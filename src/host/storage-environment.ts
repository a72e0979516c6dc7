// The parts of a Turnpike whose ledger store the caller provides. The key folder and the local state are optional and
// independent.

import { resolve } from 'node:path';
import { isFolderWithin } from '../system/files/folder-within.js';
import { headFile, type HeadFile } from '../stores/ledger/head-file.js';
import { memoryHeadStore, signedMemoryHeadStore } from '../stores/memory/memory-head-store.js';
import { lockFolder } from '../stores/sqlite/writer-lock.js';
import { usageError } from '../core/errors.js';
import type { ExternalHeadStore, LedgerStore } from '../engine/ports/ledger/ledger-store.js';
import { refuseUnfinishedCopy } from '../home/copy-marker.js';
import { keyFolder, localState, type KeyFolder, type LocalState } from '../home/home-paths.js';
import { isShared } from '../engine/ports/ledger/shared-store.js';
import {
  addTableHeads,
  erasureSealOf,
  headTableOf,
  makeFolder,
  openSharedHead,
  openSignable,
  signHeads,
  type HomeStores,
} from '../home/home.js';
import type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';

type StoreFolders = Pick<TurnpikeOptions, 'keys' | 'state' | 'sandbox'>;

/**
 * Opens the key folder and the local state that belong to `store`, and creates missing folders. If this fails, the
 * caller closes `store`.
 * @throws LedgerError LEDGER_LOCKED while another process uses the local state
 * @throws UsageError for a part that lies in the sandbox
 * @throws PolicyError for a damaged or lost key
 */
export async function openStorageEnvironment(store: LedgerStore, options: StoreFolders): Promise<StorageEnvironment> {
  const keys = options.keys === undefined ? null : keyFolder(resolve(options.keys));
  const state = options.state === undefined ? null : localState(resolve(options.state));
  const folders = [keys?.keys, state?.state].filter((folder) => folder !== undefined);
  if (state !== null) refuseUnfinishedCopy(state.state);
  for (const folder of folders) refuseInSandbox(folder, options.sandbox);
  folders.forEach(makeFolder);
  const lock = state === null ? null : lockFolder(state.state);
  try {
    if (keys !== null) store.sealErasures?.(erasureSealOf(keys, { readOnly: false }));
    const stores = await openStores(store, keys, state);
    return { home: null, keys, state, ...stores, acceptMissingHead: true, release: () => lock?.release() };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

/** The head is in the file of the local state, otherwise in memory. With a key folder it is signed. */
async function openStores(store: LedgerStore, keys: KeyFolder | null, state: LocalState | null): Promise<HomeStores> {
  const head = await store.head();
  if (keys === null && headTableOf(store) !== null)
    throw usageError('the database of heads needs the key folder of the ledger, because its heads are signed: name it');
  if (keys === null)
    return {
      store,
      externalHeadStore: state === null ? memoryHeadStore(head) : unsignedHeadStore(headFile(state.head)),
    };
  const { externalHeadStore, signed } =
    state === null
      ? openSignable((seal) => addTableHeads(store, keys, signedMemoryHeadStore(head, seal), seal), keys, {
          readOnly: false,
        })
      : isShared(store)
        ? openSharedHead(store, state, keys, { readOnly: false })
        : openSignable((seal) => headFile(state.head, seal), keys, { readOnly: false });
  return signed
    ? { store, externalHeadStore }
    : { store, externalHeadStore, signHeads: () => signHeads(keys, store, externalHeadStore) };
}

/**
 * Without a key no note can be verified, so none is read. The ledger may have archives from a time when it had a key.
 */
const unsignedHeadStore = (externalHeadStore: HeadFile): ExternalHeadStore => ({
  read: () => externalHeadStore.read(),
  write: (head) => externalHeadStore.write(head),
  reopen: () => externalHeadStore.reopen(),
  close: () => externalHeadStore.close(),
});

/** An agent of a case with the name of such a folder could change its files. Neither folder needs to exist yet. */
function refuseInSandbox(folder: string, sandbox: TurnpikeOptions['sandbox']): void {
  if (typeof sandbox !== 'string') return;
  if (!isFolderWithin(folder, sandbox)) return;
  throw usageError(`${folder} lies in the sandbox ${sandbox}: name a folder elsewhere`);
}
