// What all pages have: who has signed in, the remedy for a reader without access, and the head of the pages besides the
// inspector.

import { signal } from '@preact/signals';
import type { AccessProblem } from '../data/feed.js';
import { readSession, signInAddress, signOut, type PageSession } from '../data/http-feed.js';
import { Logo } from './common/icons.js';
import { VisibleText } from './common/text.js';

const session = signal<PageSession | null>(null);
let isRead = false;

/** Reads once who has signed in. Call it when the service has answered a request without a token. */
export function loadSession(): void {
  if (isRead) return;
  isRead = true;
  void readSession().then(
    (found) => (session.value = found),
    () => (isRead = false),
  );
}

export function SessionMenu() {
  const current = session.value;
  if (current === null) return null;
  const leave = (): void => {
    void signOut(current).finally(() => location.reload());
  };
  return (
    <span class="session-menu">
      <span title={current.role}>
        <VisibleText text={current.actor} />
      </span>{' '}
      <button type="button" onClick={leave}>
        Sign out
      </button>
    </span>
  );
}

const ACCESS_PROBLEM_TEXTS: Readonly<Record<AccessProblem, string>> = {
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

interface ReadFailureProps {
  readonly title: string;
  readonly why: string;
  /** Why access is refused; null for any other failure. */
  readonly refusal: AccessProblem | null;
  readonly right?: string;
}

/** Says why the service could not be read. */
export const ReadFailure = ({ title, why, refusal, right = 'observe' }: ReadFailureProps) => (
  <div role="alert">
    <h2>{refusal === null ? title : ACCESS_PROBLEM_TEXTS[refusal]}</h2>
    <p>{refusal === null ? why : <AccessHelp right={right} />}</p>
  </div>
);

interface PageHeaderProps {
  readonly title: string;
  /** The page besides this one and the inspector. */
  readonly other: { readonly title: string; readonly path: string };
}

export const PageHeader = ({ title, other }: PageHeaderProps) => (
  <header class="top">
    <Logo />
    <h1>{title}</h1>
    <span class="grow" />
    <SessionMenu />
    <a class="plain nav" href={`./${other.path}${location.hash}`}>
      {other.title}
    </a>
    <a class="plain nav" href={`./${location.hash}`}>
      State inspector
    </a>
  </header>
);
