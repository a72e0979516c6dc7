// The changes that the tests of verification make to a bag, one each; manifests and digests are updated.

import { expect } from '@jest/globals';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { RunRecord } from '../../../src/core/contract/run/run-record.js';
import type { BagTree } from '../../../src/engine/ports/bag-tree.js';
import type { ExportBagRule, ExportBagReport } from '../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { assembleBundle, filesOf, ledgerOf, payload, requestFor, result, type Files } from './material.js';

export const MANIFEST = 'data/manifest.json';
export const RUNS = 'data/runs.jsonl';
export const AUDIT = 'data/audit.jsonl';
export const P1 = `data/artifacts/${sha256(payload(1).bytes)}`;
export const P2 = `data/artifacts/${sha256(payload(2).bytes)}`;
export const R3 = `data/artifacts/${sha256(result(3).bytes)}`;
export const LANES = `data/policies/lanes-${sha256('lanes: of the tests')}.yaml`;
export const MACHINES = `data/machines/${sha256('{"machines":"of the tests"}')}.json`;

export const inMemory = (files: Files): BagTree => ({
  async *entries() {
    yield { kind: 'directory', path: 'data' };
    for (const [path, content] of Object.entries(files)) {
      yield await Promise.resolve({ kind: 'file', path, bytes: content.length } as const);
    }
  },
  async *read(path) {
    // In small pieces, so that lines and characters are split.
    const content = files[path]!;
    const size = Math.max(1, Math.ceil(content.length / 64));
    for (let from = 0; from < content.length; from += size) {
      yield await Promise.resolve(content.subarray(from, from + size));
    }
  },
  close: () => Promise.resolve(),
});
export const check = (files: Files): Promise<ExportBagReport> => verifyExportBag(inMemory(files));

type Manifest = { -readonly [K in keyof ExportBundle]: ExportBundle[K] };
export type Change = (files: Files) => Files;

export const without = (files: Files, path: string): Files => {
  expect(files[path]).toBeDefined();
  return Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));
};

/** Changes the manifest, and updates its hash and bag-info.txt. */
export const manifest =
  (change: (manifest: Manifest) => void): Change =>
  (files) => {
    const changed = JSON.parse(files[MANIFEST]!.toString()) as Manifest;
    const before = canonicalJson(changed);
    change(changed);
    expect(canonicalJson(changed)).not.toBe(before);
    if (changed.integrity !== undefined) {
      changed.integrity.manifest_hash_sha256 = sha256(canonicalJson({ ...changed, integrity: undefined }));
    }
    const hash = changed.integrity?.manifest_hash_sha256 ?? '';
    const info = files['bag-info.txt']!.toString().replace(/(Turnpike-Manifest-SHA256:\s+)\S+/, `$1${hash}`);
    return { ...files, [MANIFEST]: Buffer.from(canonicalJson(changed)), 'bag-info.txt': Buffer.from(info) };
  };

export const info =
  (from: string | RegExp, to: string): Change =>
  (files) => {
    const text = files['bag-info.txt']!.toString();
    expect(text.replace(from, to)).not.toBe(text);
    return { ...files, 'bag-info.txt': Buffer.from(text.replace(from, to)) };
  };

/** Changes the lines of a file. */
export const lines =
  (path: string, change: (lines: string[]) => string[]): Change =>
  (files) => {
    const changed = change(files[path]!.toString().split('\n').slice(0, -1));
    const bytes = Buffer.from(changed.map((line) => `${line}\n`).join(''));
    expect(bytes.equals(files[path]!)).toBe(false);
    return { ...files, [path]: bytes };
  };

/** Changes the first line of a file that contains a text, as a parsed value. */
const value = (path: string, having: string, change: (value: unknown) => void): Change =>
  lines(path, (all) => {
    const index = all.findIndex((line) => line.includes(having));
    const changed: unknown = JSON.parse(all[index]!);
    change(changed);
    return all.with(index, canonicalJson(changed));
  });
export const event = (having: string, change: (event: AuditEvent) => void): Change =>
  value(AUDIT, having, (changed) => {
    change(changed as AuditEvent);
  });
export const run = (having: string, change: (run: RunRecord) => void): Change =>
  value(RUNS, having, (changed) => {
    change(changed as RunRecord);
  });

export const bytes =
  (path: string, to: string | Buffer): Change =>
  (files) => ({ ...files, [path]: Buffer.from(to) });
export const text =
  (path: string, change: (text: string) => string): Change =>
  (files) => {
    const before = files[path]!.toString();
    expect(change(before)).not.toBe(before);
    return { ...files, [path]: Buffer.from(change(before)) };
  };
export const all =
  (...changes: readonly Change[]): Change =>
  (files) =>
    changes.reduce((changed, change) => change(changed), files);

export const swapped = <T>(items: readonly T[], one: number, other: number): T[] =>
  items.with(one, items[other]!).with(other, items[one]!);
export const notLast = (text: string): string => text.slice(0, -1);

/** A valid bag without a proof. */
export async function goodBundle(folder: string): Promise<Files> {
  await assembleBundle(await ledgerOf(), requestFor(folder));
  return filesOf(folder);
}

/** The change, and all rules that it violates; as a BagIt bag it is valid again. */
export type BundleCase = readonly [title: string, change: Change, broken: readonly ExportBagRule[]];
