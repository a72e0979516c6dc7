// What every page needs before it draws: its token, and the element to draw in.

import { takeToken } from './store/address.js';

const TOKEN = 'turnpike-token';

/** The token in the address, which is removed from it; otherwise the token that this tab was opened with. */
export function takeOwnToken(): string | null {
  const { token, rest } = takeToken(location.hash);
  if (token === null) return sessionStorage.getItem(TOKEN);
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, '', `${location.pathname}${rest === '' ? '' : `#${rest}`}`);
  return token;
}

/** A new token may permit another view of the ledger, so the page is loaded again. */
export function reloadOnNewToken(): void {
  takeOwnToken();
  location.reload();
}

export function findRoot(): Element {
  const page = document.getElementById('page');
  if (page === null) throw new Error('the page has no root element');
  return page;
}
