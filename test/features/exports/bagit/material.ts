// Shared by the tests of bags: temporary directories, bags in memory, archives made byte by byte.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { openBagFolder } from '../../../../src/features/exports/bag/bag-folder.js';
import { openBagZip, type ZipLimits } from '../../../../src/features/exports/bag/bag-zip.js';
import type { BagLimits } from '../../../../src/features/exports/bagit/inventory.js';
import { inspectBag, type BagReport } from '../../../../src/features/exports/bagit/verify-bag.js';
import { byPath, type PayloadFile } from '../../../../src/features/exports/bagit/write-bag.js';
import type { BagTree } from '../../../../src/engine/ports/bag-tree.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

export const OPTIONS = { bagging_date: '2026-11-22', info: [{ label: 'Source-Organization', value: 'Turnpike' }] };

/** A directory for one test file, and a function that removes it. */
export function place(): { readonly at: (name: string) => string; readonly remove: () => void } {
  const root = tempFolder('bag');
  return { at: (name) => join(root, name), remove: () => rmSync(root, { recursive: true, force: true }) };
}

export const verifyBag = async (tree: BagTree, limits?: Partial<BagLimits>): Promise<BagReport> =>
  (await inspectBag(tree, limits)).report;

export const verifyFolder = (folder: string, limits?: Partial<BagLimits>): Promise<BagReport> =>
  verifying(openBagFolder(folder), limits);

export const verifyZip = async (file: string, limits?: Partial<ZipLimits>): Promise<BagReport> =>
  verifying(await openBagZip(file, limits));

async function verifying(tree: BagTree, limits?: Partial<BagLimits>): Promise<BagReport> {
  try {
    return await verifyBag(tree, limits);
  } finally {
    await tree.close();
  }
}

export const rulesOf = ({ findings }: BagReport, severity?: 'error' | 'warning'): readonly string[] =>
  [
    ...new Set(
      findings
        .filter((finding) => severity === undefined || finding.severity === severity)
        .map(({ rule_id }) => rule_id),
    ),
  ].sort();

/** In the order in which a bag is written. */
export async function* payloadOf(files: Readonly<Record<string, string | Uint8Array>>): AsyncGenerator<PayloadFile> {
  const list = Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content) }));
  for (const file of list.sort(byPath)) yield await Promise.resolve(file);
}

/** Writes files into a folder. */
export function writeFiles(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

/** A complete and valid bag in memory; `data/` precedes each path. */
export const tree = (files: Readonly<Record<string, string | Uint8Array>>): BagTree => ({
  async *entries() {
    yield { kind: 'directory', path: 'data' };
    for (const [path, content] of Object.entries(files)) {
      yield await Promise.resolve({ kind: 'file', path, bytes: Buffer.from(content).length } as const);
    }
  },
  async *read(path) {
    yield await Promise.resolve(Buffer.from(files[path] ?? ''));
  },
  close: () => Promise.resolve(),
});

/** One entry of an archive, with the false statements that it makes. */
export interface Forged {
  readonly name: string;
  readonly content?: string | Uint8Array;
  readonly deflate?: boolean;
  /** The size in the directory of the archive. */
  readonly bytes?: number;
  readonly compressed?: number;
  readonly mode?: number;
  readonly flags?: number;
  readonly method?: number;
  readonly extra?: Buffer;
  /** The name before the data. */
  readonly localName?: string;
  readonly localMethod?: number;
  /** Points to the data of the entry with this number. */
  readonly sameAs?: number;
}

export function forgeZip(entries: readonly Forged[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const entry of entries) {
    const content = Buffer.from(entry.content ?? '');
    const data = entry.deflate === true ? deflateRawSync(content) : content;
    const method = entry.method ?? (entry.deflate === true ? 8 : 0);
    const [name, localName] = [Buffer.from(entry.name, 'utf8'), Buffer.from(entry.localName ?? entry.name, 'utf8')];
    const at = entry.sameAs === undefined ? offset : (offsets[entry.sameAs] ?? 0);
    offsets.push(at);
    const numbers = {
      crc: crc32(content),
      compressed: entry.compressed ?? data.length,
      bytes: entry.bytes ?? content.length,
    };
    const local = headerOf(0x04034b50, 30, entry, {
      ...numbers,
      method: entry.localMethod ?? method,
      nameBytes: localName.length,
    });
    const central = headerOf(0x02014b50, 46, entry, { ...numbers, method, nameBytes: name.length });
    central.writeUInt16LE(entry.extra?.length ?? 0, 30);
    central.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 38);
    central.writeUInt32LE(at, 42);
    directory.push(central, name, entry.extra ?? Buffer.alloc(0));
    if (entry.sameAs !== undefined) continue;
    parts.push(local, localName, data);
    offset += local.length + localName.length + data.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, list, end]);
}

function headerOf(
  signature: number,
  length: number,
  entry: Forged,
  numbers: {
    readonly crc: number;
    readonly compressed: number;
    readonly bytes: number;
    readonly method: number;
    readonly nameBytes: number;
  },
): Buffer {
  const header = Buffer.alloc(length);
  const at = length === 30 ? 6 : 8;
  header.writeUInt32LE(signature, 0);
  if (length === 46) header.writeUInt16LE(0x0314, 4);
  header.writeUInt16LE(20, at - 2);
  header.writeUInt16LE(entry.flags ?? 0x800, at);
  header.writeUInt16LE(numbers.method, at + 2);
  header.writeUInt32LE(numbers.crc, at + 8);
  header.writeUInt32LE(numbers.compressed, at + 12);
  header.writeUInt32LE(numbers.bytes, at + 16);
  header.writeUInt16LE(numbers.nameBytes, at + 20);
  return header;
}
