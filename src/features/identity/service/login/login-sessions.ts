// The sessions of people who have signed in on the page, and the logins that were used. They are in memory: a new
// process knows none of them.

import { hash, timingSafeEqual } from 'node:crypto';
import { drawToken } from '../../../../stores/keys/access-token.js';
import type { Clock } from '../../../../engine/ports/clock.js';
import type { Principal } from '../../../../engine/ports/token-book.js';

const SESSIONS_MAX = 1_024;
export const SESSIONS_PER_CALLER = 8;
/** How long a session lasts at most, in milliseconds, however long its ID token does. */
const SESSION_MS_MAX = 28_800_000;

export interface LoginSession {
  /** The hash of the cookie, by which the session is known: memory has no cookie. */
  readonly id: string;
  readonly principal: Principal;
  /** What the page sends with a change, which another page cannot know. */
  readonly csrf: string;
  /** Milliseconds since the epoch. */
  readonly expires_at: number;
}

export class LoginSessions {
  readonly #clock: Clock;
  readonly #sessionMs: number;
  /** In the order in which they began. */
  readonly #sessions = new Map<string, LoginSession>();

  constructor(clock: Clock, sessionMs = SESSION_MS_MAX) {
    this.#clock = clock;
    this.#sessionMs = Math.min(sessionMs, SESSION_MS_MAX);
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** @returns the cookie of the new session; null if there are too many of other callers */
  open(principal: Principal, expires_at: number): { readonly cookie: string; readonly session: LoginSession } | null {
    this.#removeExpired();
    const own = [...this.#sessions.values()].filter((session) => session.principal.id === principal.id);
    // A person who signs in once more ends the oldest of their own sessions, never one of another person.
    const [oldest] = own;
    if (oldest !== undefined && own.length >= SESSIONS_PER_CALLER) this.#sessions.delete(oldest.id);
    if (this.#sessions.size >= SESSIONS_MAX) return null;
    const cookie = drawToken();
    const id = hash('sha256', cookie);
    const end = Math.min(expires_at, this.#clock.now() + this.#sessionMs);
    const session = { id, principal: inSession(principal, id, end), csrf: drawToken(), expires_at: end };
    this.#sessions.set(id, session);
    return { cookie, session };
  }

  find(cookie: string): LoginSession | null {
    const session = this.#sessions.get(hash('sha256', cookie));
    return session === undefined || !this.has(session.id) ? null : session;
  }

  /** Whether the session has not ended. */
  has(id: string): boolean {
    const session = this.#sessions.get(id);
    if (session === undefined) return false;
    if (session.expires_at > this.#clock.now()) return true;
    this.#sessions.delete(id);
    return false;
  }

  end(id: string): void {
    this.#sessions.delete(id);
  }

  #removeExpired(): void {
    for (const id of [...this.#sessions.keys()]) this.has(id);
  }
}

function inSession(principal: Principal, session: string, expires_at: number): Principal {
  const { verified } = principal;
  return verified === undefined ? principal : { ...principal, verified: { ...verified, session, expires_at } };
}

/** Compares in a time that does not depend on how much is equal. */
export const isSameSecret = (given: string | null, known: string): boolean =>
  timingSafeEqual(hash('sha256', given ?? '', 'buffer'), hash('sha256', known, 'buffer'));

/**
 * Limit of the logins that the issuer has accepted and that could not have expired yet. Past it the next login is
 * refused until one of these would have expired: a forgotten one could be used again.
 */
export const USED_LOGINS_MAX = 65_536;

/**
 * The logins whose codes were exchanged, or are being exchanged. A code that the issuer refuses leaves nothing here:
 * any client can begin a login and send one, and it signs no person in.
 */
export class UsedLogins {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #inFlight = new Set<string>();
  /** When each would have expired, by its state, in the order of their exchanges. */
  readonly #accepted = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Begins the exchange of a login. It must be settled, whatever comes of it. */
  begin(state: string): 'begun' | 'used' | 'full' {
    if (this.#inFlight.has(state) || this.#accepted.has(state)) return 'used';
    if (this.#accepted.size + this.#inFlight.size >= USED_LOGINS_MAX) this.#removeExpired();
    if (this.#accepted.size + this.#inFlight.size >= USED_LOGINS_MAX) return 'full';
    this.#inFlight.add(state);
    return 'begun';
  }

  /** @param isAccepted whether the issuer has accepted the code */
  settle(state: string, expires_at: number, isAccepted: boolean): void {
    this.#inFlight.delete(state);
    if (isAccepted) this.#accepted.set(state, expires_at);
  }

  #removeExpired(): void {
    const now = this.#clock.now();
    for (const [state, end] of this.#accepted) if (end <= now) this.#accepted.delete(state);
  }
}
