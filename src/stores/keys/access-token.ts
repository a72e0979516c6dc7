// The bearer token that authenticates HTTP callers: generated when a server starts, and invalid after it has ended.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { replaceFile } from '../../system/files/small-file.js';

const TOKEN_BYTES = 32;

/**
 * Generates a token of 32 random bytes, in base64url. It never begins with `-`, so that a command that gets it as an
 * argument does not read it as an option.
 */
export function drawToken(): string {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  return token.startsWith('-') ? drawToken() : token;
}

/** Writes the token with mode 0600 and replaces an earlier one. @returns a function that removes the file */
export function storeToken(path: string, token: string): () => void {
  replaceFile(path, `${token}\n`, 0o600);
  return () => rmSync(path, { force: true });
}
