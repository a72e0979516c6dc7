// Puts the page together: what it was opened with, where its ledger comes from, and the address that follows the view.

import { effect } from '@preact/signals';
import { render } from 'preact';
import { Approvals } from './data/approvals.js';
import type { Feed } from './data/feed.js';
import { HttpFeed } from './data/http-feed.js';
import { addressOf, takeToken, viewOf } from './store/address.js';
import { ProofKeeper, type Prover } from './store/proof-keeper.js';
import { Store } from './store/store.js';
import { App } from './views/app.js';
import { ApprovalsPage } from './views/approvals.js';
import { StoreContext } from './views/context.js';
import type { ProofState } from './worker/check.js';

const TOKEN = 'turnpike-token';
/** A page that nobody looks at gives its connection back after this time. */
const HIDDEN_MS = 60_000;

/** The token of the address, which is taken out of it; else the one that this tab was opened with. */
export function ownToken(): string | null {
  const { token, rest } = takeToken(location.hash);
  if (token === null) return sessionStorage.getItem(TOKEN);
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, '', `${location.pathname}${rest === '' ? '' : `#${rest}`}`);
  return token;
}

/** With another token the page is another one. */
function begunAnew(): void {
  ownToken();
  location.reload();
}

export type MakeProver = (tell: (state: ProofState | null) => void) => Prover;

export function openPage(feed: Feed, prover: MakeProver): void {
  const canHash = globalThis.isSecureContext && 'subtle' in crypto;
  const store = new Store(feed, new ProofKeeper(canHash ? prover : null));
  followAddress(store);
  render(
    <StoreContext.Provider value={store}>
      <App />
    </StoreContext.Provider>,
    root(),
  );
  pauseWhileHidden(store);
  void store.open();
}

export function openApprovals(token: string | null): void {
  document.documentElement.dataset['theme'] = viewOf(location.hash).theme;
  document.title = 'Turnpike · Approvals';
  addEventListener('hashchange', () => {
    if (takeToken(location.hash).token !== null) begunAnew();
  });
  render(<ApprovalsPage approvals={new Approvals(new HttpFeed('', token))} />, root());
}

function root(): Element {
  const page = document.getElementById('page');
  if (page === null) throw new Error('the page has no place for what it shows');
  return page;
}

/** The address says what is looked at; who changes it by hand, or goes back, sees that. */
function followAddress(store: Store): void {
  const read = (): void => {
    // The address that a service printed, opened in a tab that has the page already: nothing is loaded by that.
    if (takeToken(location.hash).token !== null) {
      begunAnew();
      return;
    }
    const view = viewOf(location.hash);
    if (addressOf(view) !== addressOf(store.view.value)) store.view.value = view;
  };
  read();
  addEventListener('hashchange', read);
  let due: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const { theme } = store.view.value;
    document.documentElement.dataset['theme'] = theme;
    // Browsers take only so many changes a second, and each costs a frame: it is written when all stands still.
    clearTimeout(due);
    due = setTimeout(() => {
      const address = addressOf(store.view.value);
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
    if (document.hidden) timer = setTimeout(() => store.pause(), HIDDEN_MS);
    else if (store.info.value !== null) store.follow();
  });
}
