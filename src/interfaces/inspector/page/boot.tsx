// Assembles the inspector: the feed of its ledger, and the address that follows the view.

import { effect } from '@preact/signals';
import { render } from 'preact';
import type { Feed } from './data/feed.js';
import { toAddress, takeToken, parseAddress } from './store/address.js';
import { ProofTracker, type Prover } from './store/proof-tracker.js';
import { Store } from './store/store.js';
import { findRoot, reloadOnNewToken } from './own-token.js';
import { App } from './views/app.js';
import { StoreContext } from './views/common/context.js';
import type { ProofState } from './worker/ledger-proof.js';

/** Time after which a hidden page closes its connection, in milliseconds. */
const HIDDEN_TIMEOUT_MS = 60_000;

export type ProverFactory = (onState: (state: ProofState | null) => void) => Prover;

export function openPage(feed: Feed, prover: ProverFactory): void {
  const canHash = globalThis.isSecureContext && 'subtle' in crypto;
  const store = new Store(feed, new ProofTracker(canHash ? prover : null));
  followAddress(store);
  render(
    <StoreContext.Provider value={store}>
      <App />
    </StoreContext.Provider>,
    findRoot(),
  );
  pauseWhileHidden(store);
  void store.open();
}

/** Keeps the address and the view in step: editing the address, or going back, changes the view. */
function followAddress(store: Store): void {
  /** The address that the page has read or written last. */
  let known = '';
  const read = (): void => {
    known = location.hash;
    // A page that is already open was given the address that a service printed. Setting it loads nothing.
    if (takeToken(location.hash).token !== null) {
      reloadOnNewToken();
      return;
    }
    const view = parseAddress(location.hash);
    if (toAddress(view) !== toAddress(store.view.value)) store.change(view);
  };
  read();
  addEventListener('hashchange', read);
  let addressTimer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const { theme } = store.view.value;
    document.documentElement.dataset['theme'] = theme;
    // Browsers limit changes of the address per second, and each one costs a frame. So it is written once the view
    // rests.
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
      // Another address was set just now, and its event has not come yet.
      if (location.hash !== known) return;
      const address = toAddress(store.view.value);
      history.replaceState(null, '', address === '' ? location.pathname : `#${address}`);
      known = location.hash;
    }, 150);
  });
}

function pauseWhileHidden(store: Store): void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  document.addEventListener('visibilitychange', () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (document.hidden) timer = setTimeout(() => store.pause(), HIDDEN_TIMEOUT_MS);
    else if (store.info.value !== null) store.follow();
  });
}
