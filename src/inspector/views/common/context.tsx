// The one store of the page, at hand in every view.

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Store } from '../../store/store.js';

export const StoreContext = createContext<Store | null>(null);

export function useStore(): Store {
  const store = useContext(StoreContext);
  if (store === null) throw new Error('a view outside the page');
  return store;
}

/** What is open above the page, of which there is one at a time. */
export const openPanel = signal<'none' | 'keys' | 'proof' | 'tree' | 'events'>('none');

export const togglePanel = (what: Exclude<typeof openPanel.value, 'none'>): void => {
  openPanel.value = openPanel.value === what ? 'none' : what;
};

/** Which nodes of the tree are opened. */
export const openedNodes = signal<ReadonlySet<string>>(new Set());

/** Reading content is recorded where a service gives it: it is read when somebody has said so, once. */
export const isReadingAllowed = signal(false);
