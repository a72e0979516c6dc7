// The pages of approvals and of coverage, as a service serves them. The inspector does not load them.

import { render } from 'preact';
import { ApprovalsClient } from './data/approvals-client.js';
import { HttpFeed } from './data/http-feed.js';
import { findRoot, reloadOnNewToken, takeOwnToken } from './own-token.js';
import { parseAddress, takeToken } from './store/address.js';
import { ApprovalsPage } from './views/approvals-page.js';
import { CoveragePage } from './views/coverage.js';
import { loadSession } from './views/page-header.js';

const token = takeOwnToken();
document.documentElement.dataset['theme'] = parseAddress(location.hash).theme;
addEventListener('hashchange', () => {
  if (takeToken(location.hash).token !== null) reloadOnNewToken();
});
const feed = new HttpFeed('', token, globalThis, loadSession);
const isCoverage = location.pathname.endsWith('/coverage');
document.title = `Turnpike · ${isCoverage ? 'Coverage' : 'Approvals'}`;
render(isCoverage ? <CoveragePage feed={feed} /> : <ApprovalsPage approvals={new ApprovalsClient(feed)} />, findRoot());
