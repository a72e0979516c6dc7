import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryState, memoryStore } from '../../src/adapters/memory-ledger-store.js';
import { headInMemory } from '../../src/adapters/head-in-memory.js';
import type { LedgerStore } from '../../src/ports/ledger-store.js';
import { LedgerReader } from '../../src/runtime/ledger-reader.js';
import { Bench } from '../fixtures/bench.js';
import { FaultyStore } from '../fixtures/faulty-store.js';
import { proposal } from '../fixtures/tree.js';

const json = (value: object): string => JSON.stringify(value);

let folder: string;
let store: LedgerStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-marks-'));
  mkdirSync(join(folder, 'case-local'));
  const state = new MemoryState();
  store = memoryStore({ state });
  const { turnpike } = await Bench.open({ store, sandbox: folder });
  const agent = await turnpike.startAgent();
  const first = json(proposal('THINK', {}));
  await agent.respond(first, { inputId: 'mine' });
  await agent.respond(first);
  await agent.respond(json(proposal('NO_SUCH', {})));
  await agent.respond('{', { inputId: 'broken' });
  await agent.respond(json(proposal('READ_FILE', { path: '/sandbox/none.txt' })));
  await agent.end();
  await turnpike.close();
  store = memoryStore({ state });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const rulesOf = async (from: LedgerStore): Promise<readonly string[]> => {
  const verdict = await new LedgerReader(from, headInMemory(await store.head())).verify();
  return verdict.ok ? [] : verdict.problems.map(({ rule }) => rule);
};

class Forgetful extends FaultyStore {
  override input = (tree_id: string, id: string) =>
    id === 'mine' ? Promise.resolve(null) : this.inner.input(tree_id, id);
}
class Confused extends FaultyStore {
  override input = async (tree_id: string, id: string) => ((await this.inner.input(tree_id, id)) ?? 0) + 1;
}
class Careless extends FaultyStore {
  override proposal = () => Promise.resolve(null);
}

test('C19 D4: of a whole ledger every mark is there: of accepted ids, and of inputs that callers named', async () => {
  expect(await rulesOf(store)).toEqual([]);
});

test('D4: an input id that is not remembered, or elsewhere, is found', async () => {
  expect(await rulesOf(new Forgetful(store))).toEqual(['mark.input']);
  expect(await rulesOf(new Confused(store))).toEqual(['mark.input', 'mark.input']);
});

test('C19: an accepted proposal id that is not remembered is found; one that was refused as it came need not be', async () => {
  expect(await rulesOf(new Careless(store))).toEqual(['mark.proposal', 'mark.proposal', 'mark.proposal']);
});
