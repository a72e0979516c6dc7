// The secret with which a service authenticates at an issuer: from a file of its owner, or from the environment.
// Never an argument, which other users of the machine can read.

import { usageError } from '../../../core/errors.js';
import { readSmallFile } from '../../../system/files/small-file.js';

export const CLIENT_SECRET_VARIABLE = 'TURNPIKE_OIDC_CLIENT_SECRET';
const BYTES_MAX = 4_096;
const FORBIDDEN = 0o077;

/**
 * @returns null for a public client, which has no secret
 * @throws PolicyError if other users may read the file; UsageError if there is no file, or it is empty
 */
export function readClientSecret(file: string | undefined): string | null {
  if (file === undefined) {
    const given = process.env[CLIENT_SECRET_VARIABLE] ?? '';
    // A platform may set the variable without a value.
    return given === '' ? null : given;
  }
  const bytes = readSmallFile(file, { bytesMax: BYTES_MAX, forbiddenMode: FORBIDDEN });
  const secret = bytes === null ? '' : Buffer.from(bytes).toString('utf8').trim();
  if (secret === '') throw usageError(`${file} must have the client secret`);
  return secret;
}
