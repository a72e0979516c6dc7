// Who has signed in, and how to sign out.

import { signal } from '@preact/signals';
import { readSession, signOut, type PageSession } from '../data/page-session.js';
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
