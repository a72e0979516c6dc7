// The secret by which callers over HTTP are known: drawn when a server starts, and worthless when it has ended.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { replaceFile } from '../files/small-file.js';

const TOKEN_BYTES = 32;

/** 256 bits, in base64url. */
export const drawToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

/** Writes the token for nobody but the owner, in the place of an earlier one. @returns a function that takes it away */
export function storeToken(path: string, token: string): () => void {
  replaceFile(path, `${token}\n`, 0o600);
  return () => rmSync(path, { force: true });
}
