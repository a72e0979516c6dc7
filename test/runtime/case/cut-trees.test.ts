// A promotion does not read the whole log. It still detects a tree of its case that has lost entries in the store.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteRecords } from '../../../src/stores/records/sqlite-ledger-records.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { StoredEntry, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

/** A store that has lost the entries of one tree from a sequence number on; its log has them. */
class CutStore extends FaultyStore {
  cut: { readonly tree_id: string; readonly end: number } | null = null;
  logPasses = 0;

  override tree = (tree_id: string, fromSeq?: number): AsyncIterable<TreeEntry> => this.#tree(tree_id, fromSeq);
  override log = (fromIndex?: number): AsyncIterable<StoredEntry> => {
    this.logPasses += 1;
    return this.inner.log(fromIndex);
  };

  async *#tree(tree_id: string, fromSeq?: number): AsyncGenerator<TreeEntry> {
    for await (const entry of this.inner.tree(tree_id, fromSeq)) {
      if (this.cut?.tree_id === tree_id && entry.seq >= this.cut.end) return;
      yield entry;
    }
  }
}

let folder: string;
let store: CutStore;
let bench: Bench;
beforeEach(() => {
  folder = tempFolder('cut');
  mkdirSync(join(folder, 'case-local'));
  const files = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') };
  store = new CutStore(createSqliteStore({ ...files, records: openSqliteRecords }));
});
afterEach(async () => {
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(more: BenchOptions = {}): Promise<AgentRun> {
  const { tools, targets } = service();
  bench = await Bench.open({ store, sandbox: folder, edit: serviceEdit, tools, targets, ...more });
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  const fact = { target: 'facts', mode: 'append', record: { id: 'f-1', text: 'The lease is old.' } };
  await agent.submit(JSON.stringify(proposal('WRITE_RECORD', fact)));
  return agent;
}

const record = { id: 'p-1', text: 'Ask for the lease first.' };
const promoted = async (id: string): Promise<string> => {
  const by = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local', ticket: 'T-17' };
  const run = await bench.turnpike.promote({ ...by, target: 'shared_playbooks', record: { ...record, id } });
  return (await run.finished).state;
};
const sizeOf = async (tree_id: string): Promise<number> => {
  let size = 0;
  for await (const entry of store.inner.tree(tree_id)) size = entry.seq + 1;
  return size;
};

async function expectCutsNoticed(tree_id: string): Promise<void> {
  const size = await sizeOf(tree_id);
  for (const lost of [1, 2, size - 1]) {
    store.cut = { tree_id, end: size - lost };
    await expect(promoted(`cut-${lost}`)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  }
  store.cut = null;
  const before = store.logPasses;
  expect(await promoted('whole')).toBe('completed');
  expect(store.logPasses).toBe(before);
}

test('S4-86: of a working agent', async () => {
  const { root_run_id } = await open();
  await expectCutsNoticed(root_run_id);
});

test('S4-86: of an agent that has just ended', async () => {
  const agent = await open();
  await agent.end();
  await expectCutsNoticed(agent.root_run_id);
});

test('S4-86: of an ended agent whose run records are written', async () => {
  const agent = await open();
  await agent.end();
  const recorded = () => store.runRecords.recorded(agent.root_run_id);
  while ((await recorded()) === null) {
    bench.clock.advance(1_000);
    await new Promise((done) => setImmediate(done));
  }
  await expectCutsNoticed(agent.root_run_id);
});
