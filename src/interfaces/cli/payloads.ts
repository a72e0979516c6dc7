// Reads raw payloads as bytes, without decoding them.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject, scanJson, type Json } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { errorCode } from '../../system/error-code.js';
import { openRegular } from '../../system/files/open-file.js';
import { splitLines } from '../../host/control/split-lines.js';
import { PAYLOAD_BYTES_CEILING } from '../../runtime/agents/caller-input.js';
import { quoteArgument } from './arguments.js';
import type { Io } from './io.js';

/** Payloads in order, each read on request. */
export interface Payloads {
  /**
   * @returns null after the last payload
   * @throws UsageError for one that is too large
   */
  next(): Promise<Uint8Array | null>;
  /** Stops reading, also while `next` waits. */
  close(): void;
}

/**
 * Each line of a file (`-`: stdin) is one payload.
 * @throws UsageError if it cannot be read
 */
export async function linePayloads(name: string, io: Io): Promise<Payloads> {
  const stream = name === '-' ? io.stdin : await openFile(name, io);
  const lines = splitLines(stream, PAYLOAD_BYTES_CEILING);
  return {
    next: async () => {
      const line = await lines.next();
      return line.done === true ? null : line.value;
    },
    close: () => void stream.destroy(),
  };
}

/**
 * Each file (`-`: stdin) is one payload.
 * @throws UsageError if one of them is missing
 */
export async function filePayloads(names: readonly string[], io: Io): Promise<Payloads> {
  if (names.filter((name) => name === '-').length > 1)
    throw usageError('stdin can be read only once: give `-` only once');
  for (const name of names) if (name !== '-') await checkFile(name, io);
  const rest = [...names];
  return {
    next: async () => {
      const name = rest.shift();
      return name === undefined ? null : readWholeFile(name, io);
    },
    close: () => undefined,
  };
}

/**
 * At most the first `bytes_max` bytes of a file (`-`: stdin).
 * @throws UsageError if it cannot be read
 */
export async function readBeginning(name: string, bytes_max: number, io: Io): Promise<Uint8Array> {
  const stream = name === '-' ? io.stdin : await openFile(name, io);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    chunks.push(chunk);
    if (length >= bytes_max) break;
  }
  return Buffer.concat(chunks).subarray(0, bytes_max);
}

async function readWholeFile(name: string, io: Io): Promise<Uint8Array> {
  const bytes = await readBeginning(name, PAYLOAD_BYTES_CEILING + 1, io);
  if (bytes.byteLength > PAYLOAD_BYTES_CEILING) {
    throw usageError(`${quoteArgument(name)} has more than ${PAYLOAD_BYTES_CEILING} bytes`);
  }
  return bytes;
}

async function openFile(name: string, io: Io): Promise<Readable> {
  await checkFile(name, io);
  return openRegular(resolve(io.cwd, name)).then(
    (file) => file.createReadStream(),
    (error: unknown) => throwUnreadable(name, error),
  );
}

async function checkFile(name: string, io: Io): Promise<void> {
  const found = await stat(resolve(io.cwd, name)).catch((error: unknown) => throwUnreadable(name, error));
  if (!found.isFile())
    throw usageError(
      `${quoteArgument(name)} is ${found.isDirectory() ? 'a directory' : 'not a regular file'}: name a file, or - for stdin`,
    );
}

function throwUnreadable(name: string, error: unknown): never {
  throw usageError(`${quoteArgument(name)} cannot be read (${errorCode(error)}): name a file, or - for stdin`);
}

/** The JSON object in these bytes; null if they are not UTF-8, not strict JSON, nested too deeply, or no object. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | null {
  const scanned = isUtf8(bytes) ? scanJson(Buffer.from(bytes).toString('utf8'), JSON_DEPTH_MAX) : null;
  return scanned?.ok === true && isJsonObject(scanned.value) ? scanned.value : null;
}
const JSON_DEPTH_MAX = 40;

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
