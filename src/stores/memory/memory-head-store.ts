import type { ExternalHead, ExternalHeadStore, HeadSeal, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { HeadFile } from '../ledger/head-file.js';

/** An external head that exists as long as the process: for stores without a directory. */
export function memoryHeadStore(head: Pick<LogHead, 'size' | 'root'>): ExternalHeadStore {
  let latest: Pick<LogHead, 'size' | 'root'> = { size: head.size, root: head.root };
  return {
    read: () => Promise.resolve(latest),
    write: ({ size, root }) => {
      latest = { size, root };
      return Promise.resolve();
    },
    reopen: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

/** Like `memoryHeadStore`; signs the head when it is read. */
export function signedMemoryHeadStore(head: Pick<LogHead, 'size' | 'root'>, first: HeadSeal | null): HeadFile {
  const plain = memoryHeadStore(head);
  let seal = first;
  const read = async (): Promise<ExternalHead | null> => {
    const latest = await plain.read();
    return latest === null || seal === null ? latest : { ...latest, note: seal.seal(latest) };
  };
  return {
    ...plain,
    read,
    openNote: (note) => seal?.open(note) ?? null,
    sealWith: (next) => void (seal = next),
    keys: () => seal?.keys?.() ?? null,
    replaceSeal: (next) => void (seal = next),
  };
}
