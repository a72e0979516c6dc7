// What all views share: the page's single store, and what is open.

import { createContext, type FunctionComponent } from 'preact';
import { useContext } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Run } from '../../store/rows/runs.js';
import type { Store } from '../../store/store.js';

export const StoreContext = createContext<Store | null>(null);

export function useStore(): Store {
  const store = useContext(StoreContext);
  if (store === null) throw new Error('a view is not inside the page');
  return store;
}

/** What a feature shows of a run. */
export type AddedRunView = FunctionComponent<{ readonly run: Run }>;

/** The open overlay; there is at most one at a time. */
export const openPanel = signal<'none' | 'keys' | 'proof' | 'tree' | 'events'>('none');

export const togglePanel = (what: Exclude<typeof openPanel.value, 'none'>): void => {
  openPanel.value = openPanel.value === what ? 'none' : what;
};

/** The expanded nodes of the tree. */
export const openedNodes = signal<ReadonlySet<string>>(new Set());

/** A service records readings of content, so content is read only after the reader has requested it once. */
export const isReadingAllowed = signal(false);
