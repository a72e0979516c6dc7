// The session of a person who has signed in on the page. Its cookie is out of reach here; the service tells the page
// who the person is, and the secret that a change must send.

export interface PageSession {
  readonly actor: string;
  readonly role: string;
  readonly csrf: string;
}

const SIGN_IN_PATH = '/auth/login';
let canSignIn = false;

/** Remembers whether the service that refused a request lets people sign in. */
export function noteRefusal(headers: Headers): void {
  if (headers.get('Turnpike-Sign-In') === SIGN_IN_PATH) canSignIn = true;
}

/** The address at which a person signs in and returns to a view; null if the service has none. */
export const signInAddress = (view: string): string | null =>
  canSignIn ? `${SIGN_IN_PATH}?return=${encodeURIComponent(view)}` : null;

/** The session of this browser; null without. */
export async function readSession(base = ''): Promise<PageSession | null> {
  const answer = await fetch(`${base}/auth/session`, { credentials: 'same-origin' });
  return answer.ok ? ((await answer.json()) as PageSession) : null;
}

export async function signOut({ csrf }: PageSession): Promise<void> {
  const headers = { 'X-Turnpike-CSRF': csrf };
  await fetch('/auth/logout', { method: 'POST', credentials: 'same-origin', headers });
}
