// The attacked verification of bundles, bags and archives, and versions with one check disabled, which the campaign
// must find.

import type { NoteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { CodedError, LedgerError } from '../../../src/core/errors.js';
import type { LedgerRule } from '../../../src/core/ledger/verification/ledger-problem.js';
import { openBagZip } from '../../../src/features/exports/bag/bag-zip.js';
import type { BagTree } from '../../../src/engine/ports/bag-tree.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import type { ExportBagReport } from '../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import type { LineFile } from '../../../src/engine/ports/ledger/line-file.js';
import { byDirectory, type Files } from './independent-bag.js';

export type BundleVerdict = 'verified' | 'by_hash_alone' | 'refused';
export type BagVerdict = 'authenticated' | 'valid' | 'refused';

export interface Verifier {
  readonly name: string;
  bundle(file: LineFile, key: NoteVerifier): Promise<BundleVerdict>;
  bag(tree: BagTree, key: NoteVerifier | null): Promise<BagVerdict>;
  /** @throws CodedError for a malformed archive */
  zip(path: string, bytes: Buffer): Promise<BagTree>;
}

const verdictOf = ({ valid, authentication }: ExportBagReport): BagVerdict =>
  !valid ? 'refused' : authentication?.verdict === 'authenticated' ? 'authenticated' : 'valid';

/** The verifier as it is. */
export const REAL: Verifier = {
  name: 'as it is',
  bundle: async (file, key) => (await verifyEvidence(await openEvidence(file, key))).verdict,
  bag: async (tree, key) => verdictOf(await verifyExportBag(tree, key)),
  zip: (path) => openBagZip(path),
};

/** With some rules of bags disabled: what violates only these is accepted. */
const bagRuleOff = (...rules: readonly string[]): Verifier => ({
  ...REAL,
  name: `without ${rules.join(', ')}`,
  bag: async (tree, key) => {
    const report = await verifyExportBag(tree, key);
    const others = report.findings.filter(({ severity, rule_id }) => severity === 'error' && !rules.includes(rule_id));
    if (others.length > 0 || report.authentication?.verdict === undefined) return 'refused';
    if (report.valid) return verdictOf(report);
    return key === null ? 'valid' : 'authenticated';
  },
});

/** With some rules of ledgers disabled. */
const ledgerRulesOff = (name: string, off: (rule: LedgerRule) => boolean): Verifier => ({
  ...REAL,
  name,
  bundle: async (file, key) => {
    const verdict = await verifyEvidence(await openEvidence(file, key));
    return verdict.verdict === 'refused' && verdict.problems.every(({ rule }) => off(rule))
      ? 'verified'
      : verdict.verdict;
  },
});

/** Reads an archive only by its directory. */
function naiveTree(zip: Buffer): BagTree {
  const files: Files = Object.fromEntries(
    [...byDirectory(zip)]
      .filter(([name]) => !name.endsWith('/'))
      .map(([name, bytes]) => [name.replace(/^[^/]*\//, ''), bytes]),
  );
  return memoryTree(files);
}

/** Files in memory as a tree. */
export const memoryTree = (files: Files): BagTree => ({
  async *entries() {
    yield await Promise.resolve({ kind: 'directory', path: 'data' } as const);
    for (const [path, content] of Object.entries(files)) yield { kind: 'file', path, bytes: content.length } as const;
  },
  async *read(path) {
    const bytes = files[path] ?? Buffer.alloc(0);
    for (let at = 0; at < bytes.length; at += 65_536) yield await Promise.resolve(bytes.subarray(at, at + 65_536));
  },
  close: () => Promise.resolve(),
});

export const PLANTED: readonly Verifier[] = [
  {
    ...REAL,
    name: 'believes the key in the file',
    bundle: async (file) => (await verifyEvidence(await openEvidence(file, null))).verdict,
    bag: async (tree) => ((await verifyExportBag(tree, null)).valid ? 'authenticated' : 'refused'),
  },
  {
    ...REAL,
    name: 'lets everything be withheld',
    bundle: (file, key) =>
      REAL.bundle(file, key).catch((error: unknown) => {
        if (error instanceof LedgerError && error.message.includes('withhold')) return 'by_hash_alone';
        throw error;
      }),
  },
  {
    ...REAL,
    name: 'reads archives by their directory alone',
    zip: (_path, bytes) => Promise.resolve(naiveTree(bytes)),
  },
  ledgerRulesOff('does not ask the machines', (rule) =>
    /^(?:replay|run|act|outcome|step|vote|end|entry\.time)\b/.test(rule),
  ),
  ledgerRulesOff('does not chain trees', (rule) => /^(?:tree|replay|log)\./.test(rule)),
  bagRuleOff('bundle.proof_unsigned'),
  bagRuleOff('bundle.proof_differs'),
  bagRuleOff(
    'bundle.not_logged',
    'bundle.run_differs',
    'bundle.event_differs',
    'bundle.artifact_missing',
    'bundle.events_differ',
  ),
  bagRuleOff(
    'payload.digest_mismatch',
    'bundle.file_changed',
    'bundle.artifact_differs',
    'bundle.policy_differs',
    'bundle.not_logged',
    'tag.digest_mismatch',
  ),
];

/** The result of a verification for what it refuses. @throws any undocumented error */
export async function refusedOr<T extends string>(work: () => Promise<T>): Promise<T | 'refused'> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CodedError && String(error.code) !== 'INVARIANT') return 'refused';
    if (error instanceof Error && 'code' in error && error.code === 'USAGE') return 'refused';
    throw error;
  }
}
