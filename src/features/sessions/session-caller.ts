import type { Principal } from '../../engine/ports/token-book.js';
import { SESSION_ROLES, type SessionRole } from './contract/session.js';

/** A role that is a session role as such; else `autonomy_runner`, which has the fewest rights. */
export const toSessionRole = (role: string): SessionRole =>
  SESSION_ROLES.find((known) => known === role) ?? 'autonomy_runner';

/** The session caller of a token. */
export const toSessionCaller = ({
  actor,
  role,
}: Principal): { readonly actor: string; readonly role: SessionRole } => ({ actor, role: toSessionRole(role) });
