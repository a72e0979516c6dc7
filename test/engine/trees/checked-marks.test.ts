// A forged mark would answer a new request with the step of another one: one that is allowed, for example.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { LedgerStore, MarkKey } from '../../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpikeIn } from '../../../src/host/turnpike.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const TAMPERED = expect.objectContaining({ code: 'LEDGER_TAMPERED' });

/** A store that has one more mark: it gives a new key the mark of another request, or of none. */
class ForgedMarks extends FaultyStore {
  from: MarkKey | null = null;
  /** The mark of a proposal names the entry after it. */
  forged = (mark: object): object =>
    'proposal_id' in mark && 'seq' in mark ? { ...mark, seq: Number(mark.seq) + 1 } : mark;
  to: (key: MarkKey) => boolean = () => false;
  override marks = (async (keys: readonly MarkKey[]) => {
    const marks = await this.inner.marks(keys);
    const { from } = this;
    if (from === null) return marks;
    const [forged] = await this.inner.marks([from]);
    return keys.map((key, index) => (this.to(key) ? this.forged({ ...forged, ...key }) : (marks[index] ?? null)));
  }) as LedgerStore['marks'];
}

const file = (name: string): object => proposal('WRITE_FILE', { path: `/sandbox/${name}.txt`, content: 'x' });

test.each([
  ['a request', (tree_id: string): MarkKey => ({ tree_id, input_id: 'one' }), (key: MarkKey) => 'input_id' in key],
  [
    'a proposal',
    (root_run_id: string, id: string): MarkKey => ({ root_run_id, proposal_id: id }),
    (key: MarkKey) => 'proposal_id' in key,
  ],
])('D4: a mark of %s that names the entry of another one is found before it decides', async (_what, keyOf, to) => {
  const folder = tempFolder('marks');
  mkdirSync(join(folder, 'sandbox'));
  const state = new LedgerModel();
  const store = new ForgedMarks(modelStore(state));
  const turnpike = await openTurnpikeIn(
    { home: null, store, externalHeadStore: memoryHeadStore(await store.head()) },
    { store, sandbox: join(folder, 'sandbox'), log: winstonLog('silent') },
  );
  const { run_id, root_run_id } = await turnpike.startAgent({ link: 'remote', case: 'case-local' });
  const first = file('one') as { readonly id: string };
  expect(await turnpike.submit(run_id, JSON.stringify(first), { inputId: 'one' })).toMatchObject({
    outcome: 'SUCCESS',
  });
  // An honest repeat is answered.
  expect(await turnpike.submit(run_id, JSON.stringify(first), { inputId: 'one' })).toMatchObject({
    outcome: 'SUCCESS',
  });
  Object.assign(store, { from: keyOf(root_run_id, first.id), to });
  const forged = turnpike.submit(run_id, JSON.stringify(file('two')), { inputId: 'two' });
  await expect(forged).rejects.toEqual(TAMPERED);
  Object.assign(store, { from: null });
  expect(await turnpike.submit(run_id, JSON.stringify(file('two')), { inputId: 'two' })).toMatchObject({
    outcome: 'SUCCESS',
  });
  await turnpike.close();
});

test('D4: a mark of a proposal that names another step is found before it decides', async () => {
  const folder = tempFolder('marks');
  mkdirSync(join(folder, 'sandbox'));
  const store = new ForgedMarks(modelStore(new LedgerModel()));
  const turnpike = await openTurnpikeIn(
    { home: null, store, externalHeadStore: memoryHeadStore(await store.head()) },
    { store, sandbox: join(folder, 'sandbox'), log: winstonLog('silent') },
  );
  const { run_id, root_run_id } = await turnpike.startAgent({ link: 'remote', case: 'case-local' });
  const first = file('one') as { readonly id: string };
  const repeat = (inputId: string) => turnpike.submit(run_id, JSON.stringify(first), { inputId });
  expect(await repeat('one')).toMatchObject({ outcome: 'SUCCESS' });
  Object.assign(store, {
    from: { root_run_id, proposal_id: first.id },
    to: (key: MarkKey) => 'proposal_id' in key,
    forged: (mark: object) => ({ ...mark, step_index: 2 }),
  });
  await expect(repeat('two')).rejects.toEqual(TAMPERED);
  Object.assign(store, { from: null });
  expect(await repeat('three')).not.toMatchObject({ outcome: 'SUCCESS' });
  expect(await turnpike.replay()).toMatchObject({ ok: true, difference: null });
  await turnpike.close();
});
