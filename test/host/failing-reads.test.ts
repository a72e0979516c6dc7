// A temporary failure to read the ledger is not a failure to write it: no caller learns that a run has stopped while
// it continues.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { LedgerError } from '../../src/core/errors.js';
import type { EntryWithContent, LedgerStore, TreeEntry } from '../../src/engine/ports/ledger/ledger-store.js';
import { Bench } from '../fixtures/bench.js';
import { FaultyStore } from '../fixtures/faulty-store.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const THINK = (): string => JSON.stringify(proposal('THINK', {}));
const unread = (): never => {
  throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the test broke this read' });
};

/** Fails the next read of one kind. */
class OnceUnread extends FaultyStore {
  fails: 'tree' | 'proposal' | 'input' | null = null;

  #once<T>(kind: OnceUnread['fails'], read: () => T): T {
    if (this.fails !== kind) return read();
    this.fails = null;
    return unread();
  }

  override tree = (tree_id: string, fromSeq?: number) => this.#once('tree', () => this.inner.tree(tree_id, fromSeq));
  override marks: LedgerStore['marks'] = async (keys) => {
    const kinds = keys.map((key) => ('input_id' in key ? 'input' : 'proposal'));
    const kind = kinds.find((one) => one === this.fails);
    return kind === undefined ? this.inner.marks(keys) : this.#once(kind, () => this.inner.marks(keys));
  };
}

let folder: string;
let store: OnceUnread;
let bench: Bench;
beforeEach(async () => {
  folder = tempFolder('reads');
  mkdirSync(join(folder, 'case-local'));
  store = new OnceUnread(memoryStore());
  bench = await Bench.open({ store, sandbox: folder });
});
afterEach(async () => {
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
});

test('D2 D4: a recorded response that cannot be read is an error of the ledger, not AUDIT_FAILURE', async () => {
  const agent = await bench.turnpike.startAgent();
  const payload = THINK();
  const first = await agent.respond(payload, { inputId: 'one' });
  store.fails = 'tree';
  await expect(agent.respond(payload, { inputId: 'one' })).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  expect(await agent.respond(payload, { inputId: 'one' })).toBe(first);
});

test.each(['proposal', 'input'] as const)(
  'D2: a failed lookup of the %s id records nothing and stops nothing',
  async (kind) => {
    const agent = await bench.turnpike.startAgent();
    store.fails = kind;
    await expect(agent.submit(THINK(), { inputId: 'one' })).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(await agent.submit(THINK(), { inputId: 'one' })).toMatchObject({ outcome: 'SUCCESS' });
    expect(await bench.bodies('step_trace')).toHaveLength(1);
  },
);

test('D16: an evicted tree whose entries have changed since is not restored', async () => {
  await bench.close();
  const changed = new Changed(memoryStore());
  bench = await Bench.open({ store: changed, sandbox: folder, liveTreesMax: 1 });
  const agent = await bench.turnpike.startAgent();
  expect(await agent.submit(THINK())).toMatchObject({ outcome: 'SUCCESS' });
  const other = await bench.turnpike.startAgent();
  await other.submit(THINK());
  changed.changes = agent.root_run_id;
  const before = (await changed.head()).size;
  await expect(agent.submit(THINK())).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  expect((await changed.head()).size).toBe(before);
  expect(await other.submit(THINK())).toMatchObject({ outcome: 'SUCCESS' });
  changed.changes = null;
  expect(await agent.submit(THINK())).toMatchObject({ outcome: 'SUCCESS' });
});

/** Returns the entries of a tree as if its steps had been denied. */
class Changed extends FaultyStore {
  changes: string | null = null;

  override tree: LedgerStore['tree'] = (tree_id, fromSeq) => this.#treeOf(this.inner.tree(tree_id, fromSeq));
  override histories: LedgerStore['histories'] = (places) => this.#historiesOf(this.inner.histories(places));

  async *#treeOf(entries: AsyncIterable<TreeEntry>): AsyncIterable<TreeEntry> {
    for await (const entry of entries) yield this.#altered(entry);
  }

  async *#historiesOf(histories: AsyncIterable<EntryWithContent>): AsyncIterable<EntryWithContent> {
    for await (const read of histories) yield { ...read, entry: this.#altered(read.entry) };
  }

  #altered(entry: TreeEntry): TreeEntry {
    return entry.tree_id === this.changes ? { ...entry, text: entry.text.replace('"SUCCESS"', '"DENIED"') } : entry;
  }
}
