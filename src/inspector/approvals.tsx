// The page of approvals, as a service serves it. The inspector does not load it.

import { render } from 'preact';
import { ApprovalsClient } from './data/approvals-client.js';
import { HttpFeed } from './data/http-feed.js';
import { findRoot, reloadOnNewToken, takeOwnToken } from './own-token.js';
import { parseAddress, takeToken } from './store/address.js';
import { ApprovalsPage } from './views/approvals.js';
import { loadSession } from './views/session-menu.js';

const token = takeOwnToken();
document.documentElement.dataset['theme'] = parseAddress(location.hash).theme;
addEventListener('hashchange', () => {
  if (takeToken(location.hash).token !== null) reloadOnNewToken();
});
render(<ApprovalsPage approvals={new ApprovalsClient(new HttpFeed('', token, globalThis, loadSession))} />, findRoot());
