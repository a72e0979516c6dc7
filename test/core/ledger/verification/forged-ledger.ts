// A small ledger in memory, and what a good forger makes of it: after an edit the leaf hashes, the chain of the tree,
// the root and the stored head are correct again, so that only the tested rule can detect it.

import { memoryStore } from '../../../../src/stores/memory/memory-ledger-store.js';
import type { Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import { NO_PREV } from '../../../../src/core/contract/run/entry.js';
import type { LedgerRule } from '../../../../src/core/ledger/verification/ledger-problem.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../../../src/core/ledger/proof/merkle.js';
import { verifyLedger, type LedgerSource } from '../../../../src/core/ledger/verification/verify-ledger.js';
import type { LogHead, StoredEntry } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { all, content, opening, scribeOf, step, treeId } from '../../../fixtures/entries.js';
import { requireContent } from '../../../../src/core/ledger/require-content.js';

export const [A, B] = [treeId(1), treeId(2)];
/** Positions in the ledger of these tests: tree A opens, tree B opens, a step in A, a step in B. */
export const PROPOSAL = 2;
export const CREATED = 4;
export const EVENT = 5;
export const RESULT = 7;
export const SIZE = 20;

export interface Ledger {
  readonly entries: readonly StoredEntry[];
  readonly artifacts: ReadonlyMap<number, readonly Artifact[]>;
}
type ForgedHead = LedgerSource['externalHead'];
export type Members = Record<string, unknown> & { body: Record<string, unknown> };

async function makeLedger(): Promise<Ledger> {
  const store = memoryStore();
  const scribe = await scribeOf(store);
  await scribe.write(store, [opening(A), opening(B)]);
  for (const tree of [A, B]) {
    await scribe.write(store, step(tree, content('raw_payload', `{"tree":"${tree}"}`), content('result', tree)));
  }
  const entries = await all(store.log());
  const artifacts = new Map<number, readonly Artifact[]>();
  for (const entry of entries) artifacts.set(entry.log_index, requireContent(await store.artifactsOf(entry)));
  return { entries, artifacts };
}

export const ledger = await makeLedger();

export const headOf = (entries: readonly StoredEntry[]): LogHead =>
  extendHead(
    EMPTY_HEAD,
    entries.map(({ text }) => leafHash(text)),
  );

export const sourceOf = (
  { entries, artifacts }: Ledger,
  {
    head = headOf(entries),
    externalHeadStore = null,
  }: { readonly head?: LogHead; readonly externalHeadStore?: ForgedHead } = {},
): LedgerSource => ({
  // eslint-disable-next-line @typescript-eslint/require-await
  async *log() {
    yield* entries;
  },
  artifactsOf: ({ log_index }) => Promise.resolve(artifacts.get(log_index ?? -1) ?? []),
  head: () => Promise.resolve(head),
  externalHead: externalHeadStore,
});

/** Edits the text of one entry, and corrects everything after it. */
export function forge(place: number, edit: (entry: Members) => unknown): Ledger {
  const ends = new Map<string, string>();
  const entries = ledger.entries.map((stored, index) => {
    const entry = JSON.parse(stored.text) as Members;
    const chained = { ...entry, prev: ends.get(stored.tree_id) ?? NO_PREV };
    const edited = index === place ? edit(chained) : chained;
    const text = typeof edited === 'string' ? edited : canonicalJson(edited);
    const leaf_hash = leafHash(text);
    ends.set(stored.tree_id, leaf_hash);
    return { ...stored, text, leaf_hash };
  });
  return { ...ledger, entries };
}

/** Changes columns of one entry, and nothing else. */
export const altered = (place: number, columns: Partial<StoredEntry>): Ledger => ({
  ...ledger,
  entries: ledger.entries.map((stored, index) => (index === place ? { ...stored, ...columns } : stored)),
});

export const withContent = (place: number, change: (brought: readonly Artifact[]) => readonly Artifact[]): Ledger => ({
  ...ledger,
  artifacts: new Map([...ledger.artifacts, [place, change(ledger.artifacts.get(place)!)]]),
});

/** The entries of these ledgers belong to no runs. */
export const ONLY_ENTRIES = { complete: false } as const;

type Named = readonly [log_index: number | null, rule: LedgerRule];

export async function problemsOf(source: LedgerSource): Promise<readonly Named[]> {
  const verdict = await verifyLedger(source, ONLY_ENTRIES);
  return verdict.ok ? [] : verdict.problems.map(({ log_index, rule }) => [log_index, rule] as const);
}
