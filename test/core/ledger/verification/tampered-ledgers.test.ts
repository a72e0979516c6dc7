// Ledgers of random run trees, with every entry of each of them tampered with: `ledger verify` or `replay` must name
// the entry. The forger is naive and only edits rows; `npm run campaign -- tamper` has better forgers and more ledgers.

import { describe, expect, jest, test } from '@jest/globals';
import type { Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import { leafHash, EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import { verifyLedger } from '../../../../src/core/ledger/verification/verify-ledger.js';
import type { EntryPlace, LogHead, StoredEntry } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { replay } from '../../../../src/kernel/replay/replay.js';
import { sized } from '../../../fixtures/campaign.js';
import { random, randomTree } from '../../../fixtures/random-tree.js';

const LEDGERS = sized(8, 40);

interface Rows {
  readonly entries: readonly StoredEntry[];
  readonly artifacts: ReadonlyMap<number, readonly Artifact[]>;
  readonly head: LogHead;
}

function ledgerOf(seed: number): Rows {
  const { decisions } = randomTree(seed, { inputs: 1 + (seed % 3) });
  const artifacts = new Map<number, readonly Artifact[]>();
  const entries: StoredEntry[] = [];
  for (const decision of decisions) {
    artifacts.set(entries.length, decision.artifacts);
    for (const { entry, text, leaf_hash } of decision.entries) {
      const { tree_id, seq, type } = entry;
      entries.push({ log_index: entries.length, tree_id, seq, type, text, leaf_hash });
    }
  }
  const leaves = entries.map(({ leaf_hash }) => leaf_hash);
  return { entries, artifacts, head: extendHead(EMPTY_HEAD, leaves) };
}

/* eslint-disable @typescript-eslint/require-await -- a store reads from elsewhere, this one has it all */
const sourceOf = ({ entries, artifacts, head }: Rows) => ({
  async *log() {
    yield* entries;
  },
  async *tree() {
    yield* entries;
  },
  artifactsOf: async ({ log_index }: EntryPlace) => artifacts.get(log_index ?? -1) ?? [],
  head: async () => head,
  externalHead: head,
});
/* eslint-enable @typescript-eslint/require-await */

/** The log index of the entry that verification or replay names first; null if neither finds anything. */
async function namedBy(rows: Rows): Promise<number | 'whole' | null> {
  const verdict = await verifyLedger(sourceOf(rows));
  if (!verdict.ok) return verdict.problems[0]?.log_index ?? 'whole';
  const report = await replay(sourceOf(rows));
  return report.difference === null ? null : (report.difference.log_index ?? 'whole');
}

const COLUMNS = ['log_index', 'tree_id', 'seq', 'type', 'text', 'leaf_hash'] as const;

const withEntry = (rows: Rows, index: number, change: Partial<StoredEntry>): Rows => ({
  ...rows,
  entries: rows.entries.map((entry, at) => (at === index ? { ...entry, ...change } : entry)),
});

/** One field of the row changed to another value of its type. */
function forged(rows: Rows, index: number, column: (typeof COLUMNS)[number], chance: () => number): Rows {
  const entry = rows.entries[index]!;
  switch (column) {
    case 'log_index':
      return withEntry(rows, index, { log_index: entry.log_index + 1 + Math.floor(chance() * 3) });
    case 'seq':
      return withEntry(rows, index, { seq: entry.seq + 1 });
    case 'tree_id':
      return withEntry(rows, index, { tree_id: `${entry.tree_id}x` });
    case 'type':
      return withEntry(rows, index, { type: entry.type === 'input' ? 'audit_event' : 'input' });
    case 'leaf_hash':
      return withEntry(rows, index, { leaf_hash: flipped(entry.leaf_hash, chance) });
    case 'text':
      return withEntry(rows, index, { text: flipped(entry.text, chance) });
  }
}

/** One character changed. */
function flipped(text: string, chance: () => number): string {
  const at = Math.floor(chance() * text.length);
  const other = text[at] === '0' ? '1' : '0';
  return text.slice(0, at) + other + text.slice(at + 1);
}

/** One member of the body changed, and the row's own hash corrected. */
function rewritten(rows: Rows, index: number, chance: () => number): Rows {
  const entry = JSON.parse(rows.entries[index]!.text) as { body: Record<string, unknown> };
  const keys = Object.keys(entry.body);
  const key = keys[Math.floor(chance() * keys.length)]!;
  const was = entry.body[key];
  entry.body[key] = typeof was === 'string' ? `${was}x` : typeof was === 'number' ? was + 1 : 'forged';
  const text = canonicalJson(entry);
  return withEntry(rows, index, { text, leaf_hash: leafHash(text) });
}

const ledgers = Array.from({ length: LEDGERS }, (_, seed) => ({ seed, rows: ledgerOf(seed + 10_000) }));
jest.setTimeout(180_000);

describe(`in each of ${LEDGERS} random ledgers`, () => {
  test('S4-86: nothing is reported while nothing was changed', async () => {
    for (const { rows } of ledgers) expect(await namedBy(rows)).toBeNull();
  });

  test('S4-86 C61: a changed field of any entry is reported, with the index of the entry', async () => {
    for (const { seed, rows } of ledgers) {
      const chance = random(seed);
      for (const [index] of rows.entries.entries()) {
        const column = COLUMNS[(index + seed) % COLUMNS.length]!;
        const named = await namedBy(forged(rows, index, column, chance));
        expect({ seed, index, column, named }).toEqual({ seed, index, column, named: index });
      }
    }
  });

  test('S4-86 C61: a rewritten entry with a correct hash is reported, at it or at the entry after it', async () => {
    for (const { seed, rows } of ledgers) {
      const chance = random(seed);
      const last = rows.entries.length - 1;
      for (const [index] of rows.entries.entries()) {
        const named = await namedBy(rewritten(rows, index, chance));
        const near = named === index || named === index + 1 || (index === last && named === 'whole');
        expect({ seed, index, named, near }).toMatchObject({ near: true });
      }
    }
  });

  test('S4-86 C61: a removed, duplicated or exchanged entry is reported at its place', async () => {
    for (const { seed, rows } of ledgers) {
      for (const [index, entry] of rows.entries.entries()) {
        const before = rows.entries.slice(0, index);
        const after = rows.entries.slice(index + 1);
        const [next, ...rest] = after;
        const changes = [[...before, ...after]];
        if (index % 2 === 0) changes.push([...before, entry, entry, ...after]);
        else if (next !== undefined) changes.push([...before, next, entry, ...rest]);
        for (const entries of changes) {
          const named = await namedBy({ ...rows, entries });
          const near = named === index || named === index + 1 || (next === undefined && named === 'whole');
          expect({ seed, index, named, near }).toMatchObject({ near: true });
        }
      }
    }
  });

  test('D15: a tail truncated below the recorded head is reported', async () => {
    for (const { rows } of ledgers) {
      for (let size = 0; size < rows.entries.length; size += 3) {
        const entries = rows.entries.slice(0, size);
        const leaves = entries.map(({ leaf_hash }) => leaf_hash);
        const source = {
          ...sourceOf({ ...rows, entries }),
          head: () => Promise.resolve(extendHead(EMPTY_HEAD, leaves)),
        };
        const verdict = await verifyLedger(source);
        expect(verdict).toMatchObject({ ok: false });
        expect(!verdict.ok && verdict.problems.map(({ rule }) => rule)).toContain('head.below');
      }
    }
  });

  test('S4-07 D14: an artifact that was changed, removed or moved to another case is reported, at its entry', async () => {
    for (const { seed, rows } of ledgers) {
      for (const [index, brought] of rows.artifacts) {
        if (brought.length === 0) continue;
        const [first, ...others] = brought;
        const bytes = Uint8Array.from([...first!.bytes, 0x20]);
        for (const artifacts of [
          [{ ...first!, bytes }, ...others],
          others,
          [{ ...first!, case_id: 'case-x' }, ...others],
        ]) {
          const named = await namedBy({ ...rows, artifacts: new Map([...rows.artifacts, [index, artifacts]]) });
          expect({ seed, index, named }).toEqual({ seed, index, named: index });
        }
      }
    }
  });
});
