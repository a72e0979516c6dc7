// What every ledger store must do with run records, whatever its storage.

import { expect, test } from '@jest/globals';
import type { EndedTree, RecordBatch } from '../../../src/engine/ports/ledger/run-record-table.js';
import { all, audited, opening, treeId } from '../../fixtures/entries.js';
import { A, B, C, code, type Bench } from './ledger-bench.js';

const record = (tree_id: string, run_id: string, text = `{"run_id":"${run_id}"}`) => ({ tree_id, run_id, text });

export function runRecordsContract(bench: Bench): void {
  const unrecorded = (): Promise<readonly EndedTree[]> => all(bench.store.runRecords.unrecorded());
  const names = async (): Promise<readonly string[]> => (await unrecorded()).map(({ tree_id }) => tree_id);
  const end = (...trees: readonly string[]) =>
    bench.scribe.write(
      bench.store,
      trees.map((tree_id) => audited(tree_id)),
      { ended: trees },
    );
  const save = (batch: RecordBatch): Promise<boolean> => bench.store.runRecords.save(batch);
  const recordAs = async (tree_id: string, seq: number, ...run_ids: readonly string[]): Promise<boolean> => {
    const ended = (await unrecorded()).find((tree) => tree.tree_id === tree_id);
    return save({
      records: run_ids.map((run_id) => record(tree_id, run_id)),
      trees: [{ ...ended!, seq }],
    });
  };

  test('S4-43: trees that have ended are listed for recording, in the order of their ends, once', async () => {
    expect(await unrecorded()).toEqual([]);
    await bench.scribe.write(bench.store, [opening(A), opening(B), opening(C)]);
    expect(await unrecorded()).toEqual([]);
    await end(C, A);
    await end(B, A);
    expect(await names()).toEqual([C, A, B]);
    await recordAs(A, 2, A);
    await end(A);
    expect(await names()).toEqual([C, B]);
    await recordAs(C, 2, C);
    await recordAs(B, 2, B);
    expect(await names()).toEqual([]);
    expect(await all(bench.store.runRecords.trees())).toEqual(
      expect.arrayContaining([A, B, C].map((tree_id) => ({ tree_id, seq: 2 }))),
    );
  });

  test('every store reads the written records', async () => {
    await bench.scribe.write(bench.store, [opening(A), opening(B)]);
    await end(A);
    const reader = bench.keep(bench.ledger.openReader());
    expect(await reader.runRecords.recorded(A)).toBeNull();
    expect(await recordAs(A, 2, A, `${A}.1`)).toBe(true);
    expect(await reader.runRecords.recorded(A)).toBe(2);
    expect(await reader.runRecords.load(A, `${A}.1`)).toBe(`{"run_id":"${A}.1"}`);
    expect(await reader.runRecords.load(A, `${A}.2`)).toBeNull();
    expect(await reader.runRecords.load(B, A)).toBeNull();
    expect(await reader.runRecords.count(A)).toBe(2);
    expect(await reader.runRecords.count(B)).toBe(0);
    expect(await reader.runRecords.recorded(B)).toBeNull();
  });

  test('until a tree is recorded, the last record of a run counts', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    await end(A);
    await save({ records: [record(A, `${A}.1`, '{"n":1}')], trees: [] });
    await save({ records: [record(A, `${A}.1`, '{"n":2}')], trees: [] });
    expect(await names()).toEqual([A]);
    await recordAs(A, 2, A);
    expect(await bench.store.runRecords.load(A, `${A}.1`)).toBe('{"n":2}');
    expect(await bench.store.runRecords.count(A)).toBe(2);
  });

  test('S4-70: the records of a recorded tree never change', async () => {
    await bench.scribe.write(bench.store, [opening(A), opening(B)]);
    await end(A, B);
    await recordAs(A, 2, A);
    const late = { records: [record(B, B), record(A, A, '{"n":2}')], trees: [] };
    await expect(save(late)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    const twice = { records: [], trees: [{ tree_id: A, place: 0, seq: 9 }] };
    await expect(save(twice)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    expect(await bench.store.runRecords.load(A, A)).toBe(`{"run_id":"${A}"}`);
    expect(await bench.store.runRecords.recorded(A)).toBe(2);
    expect(await bench.store.runRecords.count(B)).toBe(0);
  });

  test('a failed write of run records does not affect the ledger', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    await end(A);
    await recordAs(A, 2, A);
    await expect(save({ records: [record(A, A)], trees: [] })).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await bench.scribe.write(bench.store, [opening(B)]);
    await end(B);
    expect(await names()).toEqual([B]);
    expect(await recordAs(B, 2, B)).toBe(true);
    await bench.checkLedger(4);
  });

  test('more trees than one page are listed for recording, and listed as recorded', async () => {
    const ids = Array.from({ length: 1_200 }, (_, n) => treeId(n + 10));
    await bench.scribe.write(
      bench.store,
      ids.map((id) => opening(id)),
    );
    // Every second commit ends no tree.
    for (let from = 0; from < ids.length; from += 20) {
      await end(...ids.slice(from, from + 20));
      const tree_id = ids[from]!;
      await bench.scribe.write(bench.store, [audited(tree_id)], { inputs: [{ tree_id, input_id: 'mine', seq: 0 }] });
    }
    const ended = await unrecorded();
    expect(ended.map(({ tree_id }) => tree_id)).toEqual(ids);
    await save({ records: [], trees: ended.map((tree) => ({ ...tree, seq: 1 })) });
    expect(await all(bench.store.runRecords.trees())).toEqual(ids.map((tree_id) => ({ tree_id, seq: 1 })));
    expect(await unrecorded()).toEqual([]);
  });
}
