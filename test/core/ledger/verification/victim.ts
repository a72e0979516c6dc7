// A ledger in a file, and functions that tamper with it.

import type { EntryPlace } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import fc from 'fast-check';
import { headFile } from '../../../../src/stores/ledger/head-file.js';
import { createSqliteStore, openSqliteStore } from '../../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { LedgerVerdict } from '../../../../src/core/ledger/verification/ledger-verdict.js';
import { verifyLedger } from '../../../../src/core/ledger/verification/verify-ledger.js';
import { dropGuards, ledgerFolder, withDatabase } from '../../../stores/sqlite/sqlite-harness.js';
import { content, opening, scribeOf, step, treeId, type Draft } from '../../../fixtures/entries.js';
import { ONLY_ENTRIES } from './forged-ledger.js';

interface Step {
  readonly tree: number;
  readonly payload: string;
  readonly result: string;
}
/** The steps of one batch. */
export type Plan = readonly Step[];

export const plans: fc.Arbitrary<readonly Plan[]> = fc.array(
  fc.array(fc.record({ tree: fc.nat(2), payload: fc.string(), result: fc.string({ unit: 'grapheme' }) }), {
    minLength: 1,
    maxLength: 2,
  }),
  { minLength: 1, maxLength: 2 },
);

/** A ledger on disk that is restored after each attack. */
export class Victim {
  readonly at = ledgerFolder();
  readonly head = headFile(join(this.at.folder, 'ledger.head'));
  #whole: Buffer = Buffer.alloc(0);

  async write(batches: readonly Plan[]): Promise<void> {
    const store = createSqliteStore(this.at);
    const scribe = await scribeOf(store);
    const seen = new Set<number>();
    for (const plan of batches) {
      const drafts = plan.flatMap(({ tree, payload, result }): readonly Draft[] => {
        const first = seen.has(tree) ? [] : [opening(treeId(tree))];
        seen.add(tree);
        const [proposal, answer] = [content('raw_payload', `p${payload}`), content('result', `r${result}`)];
        return [...first, ...step(treeId(tree), proposal, answer)];
      });
      const { head } = await scribe.write(store, drafts);
      await this.head.write(head);
    }
    await store.close();
    await this.head.close();
    withDatabase(this.at.file, dropGuards);
    this.#whole = readFileSync(this.at.file);
  }

  async verify(): Promise<LedgerVerdict> {
    const store = openSqliteStore({ ...this.at, readOnly: true });
    const source = {
      log: (from?: number) => store.log(from),
      artifactsOf: (place: EntryPlace) => store.artifactsOf(place),
      head: () => store.head(),
      externalHead: await this.head.read(),
    };
    const verdict = await verifyLedger(source, ONLY_ENTRIES);
    await store.close();
    return verdict;
  }

  /** Lets an attack change the file. @returns the verdict of verification; the file is restored afterwards */
  async attacked(attack: (db: Database.Database) => void): Promise<LedgerVerdict> {
    withDatabase(this.at.file, (db) => {
      db.pragma('synchronous = OFF');
      attack(db);
    });
    const verdict = await this.verify();
    writeFileSync(this.at.file, this.#whole);
    return verdict;
  }
}

/** The log indexes that a verdict names; null stands for the log as a whole. */
export const named = (verdict: LedgerVerdict): readonly (number | null)[] =>
  verdict.ok ? [] : verdict.problems.map(({ log_index }) => log_index);

export async function victimOf(batches: readonly Plan[]): Promise<Victim> {
  const victim = new Victim();
  await victim.write(batches);
  return victim;
}

export interface BlockText {
  readonly log_index: number;
  readonly artifacts: string | null;
  readonly types: string;
  readonly texts: string;
  readonly leaf_hashes: Buffer;
}

export const blocksOf = (victim: Victim): readonly BlockText[] =>
  withDatabase(victim.at.file, (db) => db.prepare('SELECT * FROM blocks ORDER BY log_index').all() as BlockText[]);

/** The hash of the entry at a position of a block. */
export const hashAt = ({ leaf_hashes }: BlockText, at: number) => leaf_hashes.subarray(at * 32, (at + 1) * 32);

/** Replaces text and hash of one entry by those of another. */
export function put(
  db: Database.Database,
  to: { block: BlockText; at: number },
  from: { block: BlockText; at: number },
): void {
  const { log_index } = to.block;
  const block = db.prepare('SELECT * FROM blocks WHERE log_index = ?').get(log_index) as BlockText;
  const texts = block.texts.split('\n').with(to.at, from.block.texts.split('\n')[from.at]!).join('\n');
  const hashes = Buffer.from(block.leaf_hashes);
  hashAt(from.block, from.at).copy(hashes, to.at * 32);
  db.prepare('UPDATE blocks SET texts = ?, leaf_hashes = ? WHERE log_index = ?').run(texts, hashes, log_index);
}
