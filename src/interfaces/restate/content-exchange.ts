// Content that must not travel through Restate: payloads on their way to a worker, and responses on their way back.
// Restate carries only their hashes.

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, mkdir, open, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { sha256 } from '../../core/contract/hash.js';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';
import { readRegular } from '../../system/files/open-file.js';
import { errorCode } from '../../system/error-code.js';
import type { ContentReference } from './restate-messages.js';

/** One piece of content: of which input of which run, and its hash. */
export interface ExchangedContent {
  readonly kind: 'payload' | 'response';
  readonly run_id: string;
  readonly input_id: string;
  readonly sha256: string;
}

/** Where clients and workers leave content for each other. Implementations must be durable. */
export interface ContentExchange {
  /** Stores content durably. Does nothing if it is stored already. */
  write(content: ExchangedContent, bytes: Uint8Array): Promise<void>;
  /** @returns the bytes, or null if they are missing @throws an error if there are more than `bytesMax` */
  read(content: ExchangedContent, bytesMax: number): Promise<Uint8Array | null>;
  /** Removes content. Does nothing if it is missing. */
  remove(content: ExchangedContent): Promise<void>;
}

/** Permissions: only the user of the processes may read content. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/**
 * An exchange in a folder that all clients and workers mount. Each piece of content is one file, which is readable for
 * its owner only and not encrypted.
 */
export function exchangeFolder(folder: string): ContentExchange {
  const root = resolve(folder);
  return {
    write: async (content, bytes) => {
      await mkdir(root, { recursive: true, mode: FOLDER_MODE });
      await createDurably(root, fileNameOf(content), bytes);
    },
    read: async (content, bytesMax) => {
      try {
        return await readRegular(join(root, fileNameOf(content)), bytesMax);
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return null;
        throw error;
      }
    },
    remove: (content) => rm(join(root, fileNameOf(content)), { force: true }),
  };
}

/** The content behind a reference; null if it is missing, or differs from its reference. */
export async function readReferenced(
  exchange: ContentExchange,
  content: Omit<ExchangedContent, 'sha256'>,
  reference: ContentReference,
): Promise<Uint8Array | null> {
  const bytes = await exchange.read({ ...content, sha256: reference.sha256 }, reference.bytes);
  if (bytes?.byteLength !== reference.bytes || sha256(bytes) !== reference.sha256) return null;
  return bytes;
}

/** Ids are hashed: they may contain characters that a file name cannot. */
const fileNameOf = ({ kind, run_id, input_id, sha256: content }: ExchangedContent): string =>
  `${sha256(`${run_id} ${input_id}`)}-${content}.${kind}`;

async function createDurably(root: string, name: string, bytes: Uint8Array): Promise<void> {
  const draft = join(root, `${name}.new-${randomBytes(6).toString('hex')}`);
  const file = await open(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, FILE_MODE);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(draft, join(root, name));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await fsyncDirectory(root);
}
