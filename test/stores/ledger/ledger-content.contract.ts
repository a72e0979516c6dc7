// How every ledger store stores contents and marks.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { answered, audited, content, opening, proposalId } from '../../fixtures/entries.js';
import { A, at, B, brought, bytesOf, C, code, mark, type Bench } from './ledger-bench.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';

const INLINE_BYTES_MAX = 256 * 1_024;

export function contentContract(bench: Bench): void {
  test('the contents of an entry come back complete and in order, with kind and case', async () => {
    const contents = [
      content('file_content', 'first'),
      content('result', new Uint8Array()),
      content(
        'response',
        Uint8Array.from({ length: 256 }, (_, byte) => byte),
      ),
      content('policy', 'of no case', null),
    ];
    const drafts = [opening(A), audited(A), audited(A)];
    const batch = bench.scribe.prepare(drafts);
    const late = brought(2, content('result', 'of the last entry'));
    const [append] = batch.trees;
    const artifacts = [late, ...contents.map((artifact) => brought(1, artifact)), ...append!.artifacts];
    await bench.store.commit({ ...batch, trees: [{ ...append!, artifacts }] });
    const found = requireContent(await bench.store.artifactsOf(at(A, 1)));
    expect(found.map(({ kind, case_id, bytes }) => ({ kind, case_id, bytes: Buffer.from(bytes) }))).toEqual(contents);
    expect(bytesOf(requireContent(await bench.store.artifactsOf(at(A, 2))))).toEqual(['of the last entry']);
    expect(requireContent(await bench.store.artifactsOf(at(A, 0)))).toHaveLength(4);
    expect(requireContent(await bench.store.artifactsOf(at(A, 99)))).toEqual([]);
  });

  test('D14: content is found by case and hash; equal content in two cases is two contents', async () => {
    await bench.scribe.write(bench.store, [
      opening(A),
      answered(A, content('result', 'the same', 'case-1')),
      answered(A, content('result', 'the same', 'case-2')),
      answered(A, content('result', 'the same', 'case-1')),
    ]);
    for (const case_id of ['case-1', 'case-2']) {
      expect(Buffer.from((await bench.store.artifact(case_id, sha256('the same')))!).toString()).toBe('the same');
    }
    for (const case_id of ['case-3', null]) expect(await bench.store.artifact(case_id, sha256('the same'))).toBeNull();
    expect(await bench.store.artifact('case-1', sha256('other'))).toBeNull();
    const cases = [1, 2, 3].map(async (seq) => requireContent(await bench.store.artifactsOf(at(A, seq)))[0]?.case_id);
    expect(await Promise.all(cases)).toEqual(['case-1', 'case-2', 'case-1']);
  });

  test('D14: an erased case has no content, only its hashes; all other content stays', async () => {
    const large = content('file_content', Uint8Array.from({ length: INLINE_BYTES_MAX + 1 }), 'case-1');
    const drafts = [
      opening(A),
      answered(A, content('result', 'gone', 'case-1')),
      answered(A, large),
      answered(A, content('result', 'gone', 'case-2')),
    ];
    const snapshot = { tree_id: A, seq: 4, text: 'holds it too', mac: sha256('') };
    await bench.scribe.write(bench.store, drafts, { snapshots: [snapshot] });
    expect(await bench.store.snapshots.load(A)).toEqual(snapshot);
    const erasure = { case_id: 'case-1', tree_ids: [A], at: '2026-01-01T00:00:00.000Z', by: 'somebody' };
    expect(await bench.store.erase(erasure)).toEqual({ contents: 2, bytes: large.bytes.length + 4 });
    const lost = { kind: 'result', case_id: 'case-1', withheld: 'erased', sha256: sha256('gone'), byte_size: 4 };
    for (const store of [bench.store, bench.keep(bench.ledger.openReader())]) {
      expect(await store.artifactsOf(at(A, 1))).toEqual([lost]);
      expect(await store.artifactsOf(at(A, 2))).toMatchObject([{ withheld: 'erased', sha256: sha256(large.bytes) }]);
      expect(bytesOf(requireContent(await store.artifactsOf(at(A, 3))))).toEqual(['gone']);
      expect(requireContent(await store.artifactsOf(at(A, 0)))).toHaveLength(4);
      expect(await store.artifact('case-1', sha256('gone'))).toBeNull();
      expect(await store.artifact('case-2', sha256('gone'))).not.toBeNull();
      expect(await store.snapshots.load(A)).toBeNull();
    }
    expect(await bench.store.erase(erasure)).toEqual({ contents: 0, bytes: 0 });
    await bench.checkLedger(4);
    // The case continues with new content, even if it equals the erased content.
    await bench.scribe.write(bench.store, [answered(A, content('result', 'gone', 'case-1'))]);
    expect(bytesOf(requireContent(await bench.store.artifactsOf(at(A, 4))))).toEqual(['gone']);
    expect(await bench.store.artifactsOf(at(A, 1))).toEqual([lost]);
    expect(await bench.store.artifact('case-1', sha256('gone'))).not.toBeNull();
    expect(await bench.store.erase(erasure)).toEqual({ contents: 1, bytes: 4 });
    expect(await bench.store.artifactsOf(at(A, 4))).toEqual([lost]);
    await bench.checkLedger(5);
  });

  test.each([INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 2_000_000])(
    'content of %i bytes comes back complete',
    async (size) => {
      const bytes = Uint8Array.from({ length: size }, (_, place) => (place * 31) % 251);
      const large = content('file_content', bytes);
      await bench.scribe.write(bench.store, [opening(A), answered(A, large), answered(A, large)]);
      for (const seq of [1, 2]) {
        const [found] = requireContent(await bench.store.artifactsOf(at(A, seq)));
        expect(sha256(found!.bytes)).toBe(sha256(bytes));
      }
      expect((await bench.store.artifact('case-0001', sha256(bytes)))?.byteLength).toBe(size);
      await bench.checkLedger(3);
    },
  );

  test('content is found by hash from the first to the last commit', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    for (let round = 0; round < 3; round += 1) {
      const results = Array.from({ length: 700 }, (_, n) => answered(A, content('result', `${round}:${n}`)));
      await bench.scribe.write(bench.store, results);
      for (const text of [`${round}:0`, `${round}:350`, `${round}:699`, '0:0']) {
        expect(Buffer.from((await bench.store.artifact('case-0001', sha256(text)))!).toString()).toBe(text);
      }
      expect(await bench.store.artifact('case-0001', sha256(`${round}:700`))).toBeNull();
    }
  });

  test('a later change of the bytes by the caller does not change the stored content', async () => {
    const bytes = Buffer.from('as committed');
    await bench.scribe.write(bench.store, [opening(A), answered(A, { kind: 'result', case_id: 'case-1', bytes })]);
    bytes.fill(0);
    const [found] = requireContent(await bench.store.artifactsOf(at(A, 1)));
    expect(Buffer.from(found!.bytes).toString()).toBe('as committed');
    found!.bytes.fill(0);
    expect(bytesOf(requireContent(await bench.store.artifactsOf(at(A, 1))))).toEqual(['as committed']);
  });

  test('C19: a proposal id is stored per root run', async () => {
    await bench.scribe.write(bench.store, [opening(A), opening(B)], { proposals: [mark(1), mark(2), mark(1, B)] });
    await bench.scribe.write(bench.store, [audited(A)], { proposals: [mark(3)] });
    for (const n of [1, 2, 3]) expect(await proposalOf(bench.store, A, proposalId(n))).toEqual(mark(n));
    expect(await proposalOf(bench.store, B, proposalId(1))).toEqual(mark(1, B));
    for (const absent of [
      () => proposalOf(bench.store, B, proposalId(2)),
      () => proposalOf(bench.store, C, proposalId(1)),
    ]) {
      expect(await absent()).toBeNull();
    }
    await expect(proposalOf(bench.store, A, proposalId(10).toUpperCase())).rejects.toEqual(code('INVARIANT'));
  });

  test('D4: an input id is stored per tree, with its position', async () => {
    const inputs = [
      { tree_id: A, input_id: 'mine', seq: 0 },
      { tree_id: B, input_id: 'mine', seq: 4 },
      { tree_id: A, input_id: 'MINE', seq: 2 },
    ];
    await bench.scribe.write(bench.store, [opening(A), opening(B)], { inputs });
    for (const { tree_id, input_id, seq } of inputs) expect(await inputOf(bench.store, tree_id, input_id)).toBe(seq);
    expect(await inputOf(bench.store, A, 'other')).toBeNull();
    expect(await inputOf(bench.store, C, 'mine')).toBeNull();
  });
}
