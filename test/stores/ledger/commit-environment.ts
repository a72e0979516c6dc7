// A ledger that a check writes to, and its expected content: everything is read back and compared.

import { expect } from '@jest/globals';
import type { SealedEntry } from '../../../src/core/contract/run/entry.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { Sequencer } from '../../../src/engine/sequencer.js';
import { LedgerError } from '../../../src/core/errors.js';
import { EMPTY_HEAD, extendHead } from '../../../src/core/ledger/proof/merkle.js';
import { verifyLedger } from '../../../src/core/ledger/verification/verify-ledger.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';
import type {
  Batch,
  CommitResult,
  EntryPlace,
  InputMark,
  Integration,
  LedgerStore,
  PendingAppend,
  ProposalMark,
  TreeAppend,
} from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, scribeOf, type Draft, type Scribe } from '../../fixtures/entries.js';
import type { LedgerUnderTest } from './ledger-bench.js';

/** Maximum number of times that a batch is sent, because answers may be lost. */
const SENDS_MAX = 50;

const isLost = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_COMMIT_UNKNOWN';

/** The expected content of one tree. */
interface Tree {
  readonly entries: SealedEntry[];
  /** Hashes of the attached content, by seq. */
  readonly brought: Map<number, string[]>;
}

export class CommitGround {
  readonly ledger: LedgerUnderTest;
  readonly store: LedgerStore;
  readonly scribe: Scribe;
  readonly #trees = new Map<string, Tree>();
  readonly #proposals: ProposalMark[] = [];
  readonly #inputs: InputMark[] = [];

  private constructor(ledger: LedgerUnderTest, store: LedgerStore, scribe: Scribe) {
    this.ledger = ledger;
    this.store = store;
    this.scribe = scribe;
  }

  static async open(ledger: LedgerUnderTest): Promise<CommitGround> {
    const store = ledger.open();
    return new CommitGround(ledger, store, await scribeOf(store));
  }

  async close(): Promise<void> {
    await this.store.close();
    this.ledger.remove();
  }

  get integrates(): boolean {
    return this.ledger.integrates !== false;
  }

  /** Commits a batch, and expects to read it back. */
  async commit(batch: Batch): Promise<CommitResult> {
    const result = await this.send(batch);
    expect(result.head === null).toBe(result.first_log_indexes === null);
    this.expectCommitted(batch);
    return result;
  }

  /** Commits the batch of these drafts with its appends changed. */
  commitWith(drafts: readonly Draft[], change: (append: TreeAppend) => Partial<TreeAppend>): Promise<CommitResult> {
    const { epoch, trees } = this.scribe.next(drafts);
    return this.commit({ epoch, trees: trees.map((append) => ({ ...append, ...change(append) })) });
  }

  /** Sends a batch until its outcome is known. */
  async send(batch: Batch): Promise<CommitResult> {
    for (let sends = 1; ; sends += 1) {
      try {
        return await this.store.commit({ epoch: batch.epoch, trees: batch.trees });
      } catch (error) {
        if (!isLost(error) || sends === SENDS_MAX) throw error;
      }
    }
  }

  expectCommitted({ trees }: Batch): void {
    for (const { tree_id, from, entries, artifacts, proposals, inputs } of trees) {
      const tree = this.#trees.get(tree_id) ?? { entries: [], brought: new Map<number, string[]>() };
      this.#trees.set(tree_id, tree);
      tree.entries.push(...entries);
      for (const { entry, sha256: hash } of artifacts) {
        tree.brought.set(from + entry, [...(tree.brought.get(from + entry) ?? []), hash]);
      }
      this.#proposals.push(...proposals);
      this.#inputs.push(...inputs);
    }
  }

  entriesOf(tree_id: string): readonly SealedEntry[] {
    return this.#trees.get(tree_id)?.entries ?? [];
  }

  /** Integrates all pending appends. */
  integrate(): Promise<void> {
    return new Sequencer(this.store, () => undefined).run();
  }

  /** Sends an integration until its outcome is known. */
  async sendIntegration(integration: Integration): Promise<boolean> {
    for (let sends = 1; ; sends += 1) {
      try {
        return await this.store.integrate(integration);
      } catch (error) {
        if (!isLost(error) || sends === SENDS_MAX) throw error;
      }
    }
  }

  /** Integrates these appends, until the outcome is known. */
  async integrateThese(appends: readonly PendingAppend[]): Promise<boolean> {
    const before = await this.store.head();
    const leaves = appends.flatMap(({ leaf_hashes }) => leaf_hashes);
    const head = extendHead(before, leaves);
    for (;;) {
      try {
        return await this.store.integrate({ from: before.size, appends, head });
      } catch (error) {
        if (!isLost(error)) throw error;
        if ((await this.store.head()).size === head.size) return true;
      }
    }
  }

  async audit(): Promise<void> {
    await this.auditTrees();
    await this.auditContent();
    await this.auditMarks();
    await this.auditHistories();
    await this.auditLog();
  }

  /** Every tree has its entries, all of them and no others. */
  async auditTrees(): Promise<void> {
    for (const [tree_id, { entries }] of this.#trees) {
      const found = await all(this.store.tree(tree_id));
      expect(found.map(({ seq }) => seq)).toEqual(entries.map((_, seq) => seq));
      expect(found.map(({ text }) => text)).toEqual(entries.map(({ text }) => text));
    }
    const listed = (await all(this.store.trees())).map(({ tree_id }) => tree_id);
    expect(listed.toSorted()).toEqual([...this.#trees.keys()].toSorted());
  }

  /** Every entry has its own content, whatever log index the caller passes. */
  async auditContent(): Promise<void> {
    for (const [tree_id, { entries, brought }] of this.#trees) {
      for (const seq of entries.keys()) {
        const expected = brought.get(seq) ?? [];
        const places: readonly EntryPlace[] = [
          { tree_id, seq },
          { tree_id, seq, log_index: 0 },
          { tree_id, seq, log_index: 9_999 },
        ];
        for (const place of places) {
          const found = requireContent(await this.store.artifactsOf(place));
          expect(found.map(({ bytes }) => sha256(bytes))).toEqual(expected);
        }
      }
    }
  }

  async auditMarks(): Promise<void> {
    expect(await this.store.marks(this.#proposals)).toEqual(this.#proposals);
    expect(await this.store.marks(this.#inputs)).toEqual(this.#inputs);
  }

  async auditHistories(): Promise<void> {
    const places = [...this.#trees].map(([tree_id, { entries }], n) => ({
      tree_id,
      seq: n === 0 ? 0 : Math.floor(entries.length / 2),
    }));
    const expected = places.flatMap(({ tree_id, seq: from }) =>
      this.entriesOf(tree_id)
        .slice(from)
        .map(({ text }, n) => ({ tree_id, text, brought: this.#trees.get(tree_id)?.brought.get(from + n) ?? [] })),
    );
    const found = (await all(this.store.histories(places))).map(({ entry: { tree_id, text }, artifacts }) => ({
      tree_id,
      text,
      brought: requireContent(artifacts).map(({ bytes }) => sha256(bytes)),
    }));
    expect(found).toEqual(expected);
  }

  /** The log has every entry once, each tree in its order, and its head is that of exactly these entries. */
  async auditLog(): Promise<void> {
    await this.integrate();
    expect(await this.store.pending(1)).toEqual([]);
    const log = await all(this.store.log());
    expect(log.map(({ log_index }) => log_index)).toEqual(log.map((_, index) => index));
    for (const [tree_id, { entries }] of this.#trees) {
      const own = log.filter((entry) => entry.tree_id === tree_id);
      expect(own.map(({ text }) => text)).toEqual(entries.map(({ text }) => text));
      const placed = await all(this.store.tree(tree_id));
      expect(placed.map(({ log_index }) => log_index)).toEqual(own.map(({ log_index }) => log_index));
    }
    expect(log).toHaveLength([...this.#trees.values()].reduce((sum, { entries }) => sum + entries.length, 0));
    const leaves = log.map(({ leaf_hash }) => leaf_hash);
    const head = await this.store.head();
    expect(head).toEqual(extendHead(EMPTY_HEAD, leaves));
    const source = {
      log: (from?: number) => this.store.log(from),
      artifactsOf: (place: EntryPlace) => this.store.artifactsOf(place),
      head: () => this.store.head(),
      externalHead: head,
    };
    expect(await verifyLedger(source, { complete: false })).toMatchObject({ ok: true, entries: log.length });
  }
}
