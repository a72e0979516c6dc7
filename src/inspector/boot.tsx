// Assembles the page: its token, the feed of its ledger, and the address that follows the view.

import { effect } from '@preact/signals';
import { render } from 'preact';
import { ApprovalsClient } from './data/approvals-client.js';
import type { Feed } from './data/feed.js';
import { HttpFeed } from './data/http-feed.js';
import { toAddress, takeToken, parseAddress } from './store/address.js';
import { ProofTracker, type Prover } from './store/proof-tracker.js';
import { Store } from './store/store.js';
import { App } from './views/app.js';
import { ApprovalsPage } from './views/approvals.js';
import { StoreContext } from './views/common/context.js';
import type { ProofState } from './worker/ledger-proof.js';

const TOKEN = 'turnpike-token';
/** Time after which a hidden page closes its connection, in milliseconds. */
const HIDDEN_TIMEOUT_MS = 60_000;

/** The token in the address, which is removed from it; otherwise the token that this tab was opened with. */
export function takeOwnToken(): string | null {
  const { token, rest } = takeToken(location.hash);
  if (token === null) return sessionStorage.getItem(TOKEN);
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, '', `${location.pathname}${rest === '' ? '' : `#${rest}`}`);
  return token;
}

/** A new token may permit another view of the ledger, so the page is loaded again. */
function reloadOnNewToken(): void {
  takeOwnToken();
  location.reload();
}

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

export function openApprovals(token: string | null): void {
  document.documentElement.dataset['theme'] = parseAddress(location.hash).theme;
  document.title = 'Turnpike · Approvals';
  addEventListener('hashchange', () => {
    if (takeToken(location.hash).token !== null) reloadOnNewToken();
  });
  render(<ApprovalsPage approvals={new ApprovalsClient(new HttpFeed('', token))} />, findRoot());
}

function findRoot(): Element {
  const page = document.getElementById('page');
  if (page === null) throw new Error('the page has no root element');
  return page;
}

/** Keeps the address and the view in step: editing the address, or going back, changes the view. */
function followAddress(store: Store): void {
  const read = (): void => {
    // A page that is already open was given the address that a service printed. Setting it loads nothing.
    if (takeToken(location.hash).token !== null) {
      reloadOnNewToken();
      return;
    }
    const view = parseAddress(location.hash);
    if (toAddress(view) !== toAddress(store.view.value)) store.view.value = view;
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
      const address = toAddress(store.view.value);
      if (`#${address}` !== location.hash)
        history.replaceState(null, '', address === '' ? location.pathname : `#${address}`);
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
