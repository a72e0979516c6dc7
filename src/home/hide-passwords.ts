// The URL of a ledger in PostgreSQL. Its password is never written to a file or a message.

import { usageError } from '../core/errors.js';

const PROTOCOLS = ['postgres:', 'postgresql:'];

/**
 * The URL without its password, as it may be stored and shown.
 * @throws UsageError for a URL that is not one of PostgreSQL; the message does not repeat it
 */
export function withoutPassword(url: string, option = 'store'): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !PROTOCOLS.includes(parsed.protocol)) {
    throw usageError(`--${option} takes a URL such as postgres://user@host:5432/database`);
  }
  parsed.password = '';
  parsed.searchParams.delete('password');
  return parsed.href;
}

/** A password in the user part of a URL, or in its query. */
const PASSWORD = /(\/\/[^\s/:@]*):[^\s/]*@|([?&]password=)[^\s&]*/gu;

/** Replaces the passwords of URLs in a text, for messages that may repeat an argument. */
export const hidePasswords = (text: string): string =>
  text.replace(PASSWORD, (_, user?: string, name?: string) =>
    name === undefined ? `${user ?? ''}:***@` : `${name}***`,
  );
