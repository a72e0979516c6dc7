import type { HeadAnchor, LogHead } from '../ports/ledger-store.js';

/** A head that lives as long as the process: for stores that have no folder beside them. */
export function headInMemory(head: Pick<LogHead, 'size' | 'root'>): HeadAnchor {
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
