// Parses JSON from the command line or a file, as strictly as a proposal.

import { usageError } from '../../../core/errors.js';
import { isUtf8 } from 'node:buffer';
import { type Json, scanJson } from '../../../core/contract/json.js';
import { type Io } from '../io.js';
import { filePayloads } from '../payloads.js';

const DEPTH_MAX = 32;

/**
 * @param label how an error message names the text
 * @throws UsageError for invalid JSON or a duplicate key
 */
export function parseJsonArgument(text: string, label: string): Json {
  const scanned = scanJson(text, DEPTH_MAX, 'exact');
  if (scanned.ok) return scanned.value;
  throw usageError(`${label} is not acceptable JSON (${scanned.problem.replaceAll('_', ' ')})`);
}

/**
 * The JSON in a file (`-`: stdin).
 * @throws UsageError if it cannot be read or is invalid
 */
export async function readJsonFile(name: string, label: string, io: Io): Promise<Json> {
  const bytes = await (await filePayloads([name], io)).next();
  if (bytes === null || !isUtf8(bytes)) throw usageError(`${label} is not UTF-8`);
  return parseJsonArgument(Buffer.from(bytes).toString('utf8'), label);
}
