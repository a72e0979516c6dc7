// One ledger under test, which several stores can open, each like a separate process.

import { afterEach, beforeEach, expect } from '@jest/globals';
import { type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { verifyLedger } from '../../../src/core/ledger/verification/verify-ledger.js';
import type {
  AttachedArtifact,
  EntryPlace,
  LedgerStore,
  ProposalMark,
} from '../../../src/engine/ports/ledger/ledger-store.js';
import { content, proposalId, scribeOf, step, treeId, type Draft, type Scribe } from '../../fixtures/entries.js';

/** The functions that a kind of store provides for its tests. */
export interface LedgerUnderTest {
  open(): LedgerStore;
  /** A store that never writes. */
  openReader(): LedgerStore;
  /** Releases the writer lock without the knowledge of the writer, so that another store can take it. */
  loseLock(): void;
  /** Makes every commit fail from now on, until `repair`. */
  breakCommits(): void;
  repair(): void;
  remove(): void;
  /** False if appends wait to be integrated. @default true */
  readonly integrates?: boolean;
  /** Integrates what is pending. */
  settle?(): Promise<void>;
}

export const [A, B, C] = [treeId(1), treeId(2), treeId(3)];
export const code = (name: string) => expect.objectContaining({ code: name });

export const mark = (n: number, root_run_id = A): ProposalMark => ({
  root_run_id,
  proposal_id: proposalId(n),
  run_id: `${root_run_id}.1`,
  step_index: n,
  payload_sha256: sha256(`payload ${n}`),
  seq: n + 1,
});

export const stepOf = (tree_id: string, n = 0): readonly Draft[] =>
  step(tree_id, content('raw_payload', `{"n":${n}}`), content('result', `result ${n}`));

/** The position of an entry in its tree. */
export const at = (tree_id: string, seq: number): EntryPlace => ({ tree_id, seq });

export const brought = (entry: number, artifact: Artifact): AttachedArtifact => ({
  entry,
  artifact,
  sha256: sha256(artifact.bytes),
});

export const bytesOf = (artifacts: readonly Artifact[]): readonly string[] =>
  artifacts.map(({ bytes }) => Buffer.from(bytes).toString());

/** A new ledger for every test, and its writer. */
export interface Bench {
  readonly ledger: LedgerUnderTest;
  readonly store: LedgerStore;
  readonly scribe: Scribe;
  /** Closes a store after the test. */
  /** Closes the store of the writer, and opens it again. */
  readonly reopen: () => Promise<void>;
  readonly keep: (store: LedgerStore) => LedgerStore;
  /** Verifies the whole ledger as another process sees it. */
  readonly checkLedger: (size: number) => Promise<void>;
}

/** Sets up a ledger before each test of the calling block. @returns a handle to the current one */
export function ledgerBench(makeLedger: () => LedgerUnderTest): Bench {
  let ledger: LedgerUnderTest;
  let store: LedgerStore;
  let scribe: Scribe;
  let kept: LedgerStore[];

  const keep = (one: LedgerStore): LedgerStore => {
    kept.push(one);
    return one;
  };
  beforeEach(async () => {
    kept = [];
    ledger = makeLedger();
    store = keep(ledger.open());
    scribe = await scribeOf(store);
  });
  afterEach(async () => {
    for (const one of kept) await one.close();
    ledger.remove();
  });
  return {
    get ledger() {
      return ledger;
    },
    get store() {
      return store;
    },
    get scribe() {
      return scribe;
    },
    keep,
    async reopen() {
      await store.close();
      store = keep(ledger.open());
    },
    async checkLedger(size) {
      await ledger.settle?.();
      const reader = ledger.openReader();
      const { size: stored, root } = await reader.head();
      expect(stored).toBe(size);
      const source = {
        log: (from?: number) => reader.log(from),
        artifactsOf: (place: EntryPlace) => reader.artifactsOf(place),
        head: () => reader.head(),
        externalHead: { size, root },
      };
      const verdict = await verifyLedger(source, { complete: false });
      expect(verdict).toMatchObject({ verdict: expect.not.stringContaining('refused'), entries: size });
      await reader.close();
    },
  };
}
