// The message for a reader without access, with the remedy.

import type { AccessProblem } from '../data/feed.js';
import { signInAddress } from '../data/page-session.js';

export const ACCESS_PROBLEM_TEXTS: Readonly<Record<AccessProblem, string>> = {
  absent: 'The service requires a token, and this page was opened without one',
  wrong: 'The service refused this page’s token: it is wrong, has expired, or was revoked',
  right: 'The service refused this page’s token: it does not have the required right',
};

export function AccessHelp({ right = 'observe' }: { readonly right?: string }) {
  const address = signInAddress(location.pathname);
  return (
    <>
      {address !== null && (
        <>
          <a href={address}>Sign in</a>.{' '}
        </>
      )}
      Open the address that <code>turnpike serve</code> printed when it was started. Or make a token with{' '}
      <code>turnpike token --actor NAME --role ROLE --right {right}</code>, and open{' '}
      <code>
        {location.origin}
        {location.pathname}#token=TOKEN
      </code>
      .
    </>
  );
}
