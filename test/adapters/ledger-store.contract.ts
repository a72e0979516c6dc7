// What every ledger store must do, whatever it is made of. A store is tested on a ledger that several stores can open,
// each as a process of its own would.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Artifact } from '../../src/contract/artifact-ref.js';
import { sha256 } from '../../src/contract/hash.js';
import { EMPTY_HEAD } from '../../src/ledger/merkle.js';
import { verifyLedger } from '../../src/ledger/verify.js';
import type { Batch, LedgerStore, ProposalMark } from '../../src/ports/ledger-store.js';
import {
  all,
  answered,
  audited,
  content,
  opening,
  proposalId,
  proposed,
  scribeOf,
  step,
  treeId,
  type Draft,
  type Scribe,
} from '../fixtures/entries.js';

/** One ledger under test. */
export interface LedgerUnderTest {
  open(): LedgerStore;
  /** A store that never writes. */
  openReader(): LedgerStore;
  /** Frees the writer's lock behind the writer's back, so that another store can take it. */
  loseLock(): void;
  /** Lets every commit fail from now on, until `repair`. */
  breakCommits(): void;
  repair(): void;
  remove(): void;
}

const [A, B, C] = [treeId(1), treeId(2), treeId(3)];
const INLINE_BYTES_MAX = 256 * 1_024;
const code = (name: string) => expect.objectContaining({ code: name });

const mark = (n: number, root_run_id = A): ProposalMark => ({
  root_run_id,
  proposal_id: proposalId(n),
  run_id: `${root_run_id}.1`,
  step_index: n,
  payload_sha256: sha256(`payload ${n}`),
  seq: n + 1,
});

const stepOf = (tree_id: string, n = 0): readonly Draft[] =>
  step(tree_id, content('raw_payload', `{"n":${n}}`), content('result', `result ${n}`));

const bytesOf = (artifacts: readonly Artifact[]): readonly string[] =>
  artifacts.map(({ bytes }) => Buffer.from(bytes).toString());

/** Runs the suite over one kind of store. */
export function ledgerStoreContract(name: string, makeLedger: () => LedgerUnderTest): void {
  describe(`a ledger store: ${name}`, () => {
    let ledger: LedgerUnderTest;
    let opened: LedgerStore[] = [];
    let store: LedgerStore;
    let scribe: Scribe;

    const keep = (one: LedgerStore): LedgerStore => {
      opened.push(one);
      return one;
    };
    const checkLedger = async (size: number): Promise<void> => {
      const reader = ledger.openReader();
      const { size: stored, root } = await reader.head();
      expect(stored).toBe(size);
      const verdict = await verifyLedger({
        log: (from) => reader.log(from),
        artifactsOf: (log_index) => reader.artifactsOf(log_index),
        head: () => reader.head(),
        anchor: { size, root },
      });
      expect(verdict).toMatchObject({ ok: true, entries: size });
      await reader.close();
    };

    beforeEach(async () => {
      ledger = makeLedger();
      opened = [];
      store = keep(ledger.open());
      scribe = await scribeOf(store);
    });
    afterEach(async () => {
      for (const one of opened) await one.close();
      ledger.remove();
    });

    describe('reading and writing', () => {
      test('a new ledger is empty: size 0, the root of nothing', async () => {
        expect(await store.head()).toEqual(EMPTY_HEAD);
        expect(await all(store.log())).toEqual([]);
        expect(await all(store.tree(A))).toEqual([]);
        expect(await all(store.trees())).toEqual([]);
        expect(await store.artifactsOf(0)).toEqual([]);
      });

      test('S4-09: entries come back as they were committed, in the order of the log and of their tree', async () => {
        const first = await scribe.write(store, [opening(A), opening(B), ...stepOf(A)]);
        const second = await scribe.write(store, [...stepOf(B), ...stepOf(A, 1)]);
        const expected = [...first.entries, ...second.entries].map(({ entry, text, leaf_hash }, log_index) => ({
          log_index,
          tree_id: entry.tree_id,
          seq: entry.seq,
          type: entry.type,
          text,
          leaf_hash,
        }));
        expect(await all(store.log())).toEqual(expected);
        expect(await all(store.log(7))).toEqual(expected.slice(7));
        const ofA = expected.filter(({ tree_id }) => tree_id === A);
        expect(ofA.map(({ seq }) => seq)).toEqual(Array.from({ length: 19 }, (_, seq) => seq));
        expect(await all(store.tree(A))).toEqual(ofA);
        expect(await all(store.tree(A, 5))).toEqual(ofA.slice(5));
        expect(await all(store.tree(C))).toEqual([]);
        expect(await store.head()).toEqual(second.head);
        await checkLedger(expected.length);
      });

      test('more entries than a store reads at a time come back without a gap', async () => {
        await scribe.write(store, [opening(A), opening(B)]);
        const many = Array.from({ length: 600 }, (_, n) => audited(n % 3 === 0 ? B : A));
        await scribe.write(store, many);
        expect((await all(store.log())).map(({ log_index }) => log_index)).toEqual(
          Array.from({ length: 602 }, (_, log_index) => log_index),
        );
        expect((await all(store.tree(A))).map(({ seq }) => seq)).toEqual(Array.from({ length: 401 }, (_, seq) => seq));
        await checkLedger(602);
      });

      test('an iteration does not keep the writer from writing, and comes to what was written meanwhile', async () => {
        await scribe.write(store, [opening(A), ...Array.from({ length: 300 }, () => audited(A))]);
        let seen = 0;
        for await (const { log_index } of store.log()) {
          if (log_index === 0) await scribe.write(store, [audited(A)]);
          seen += 1;
        }
        expect(seen).toBe(302);
      });

      test('a batch without entries is one', async () => {
        await scribe.write(store, [opening(A)]);
        await scribe.write(store, []);
        await checkLedger(1);
      });

      test('another store sees what is committed, at once, while the writer is open', async () => {
        const reader = keep(ledger.openReader());
        expect(await reader.head()).toEqual(EMPTY_HEAD);
        const batch = await scribe.write(store, [opening(A), proposed(A, content('raw_payload', 'p'))], {
          proposals: [mark(1)],
          inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }],
        });
        expect(await reader.head()).toEqual(batch.head);
        expect(await all(reader.tree(A))).toHaveLength(2);
        expect(bytesOf(await reader.artifactsOf(1))).toEqual(['p']);
        expect(Buffer.from((await reader.artifact('case-0001', sha256('p')))!).toString()).toBe('p');
        expect(await reader.proposal(A, proposalId(1))).toEqual(mark(1));
        expect(await reader.input(A, 'mine')).toBe(1);
      });

      test('trees are listed in the order of their first entry, and say whether they have ended', async () => {
        await scribe.write(store, [opening(B), opening(A)], { trees: [{ tree_id: B, state: 'opened' }] });
        await scribe.write(store, [opening(C), audited(B)], { trees: [{ tree_id: A, state: 'ended' }] });
        const expected = [
          { tree_id: B, ended: false, log_index: 0 },
          { tree_id: A, ended: true, log_index: 1 },
          { tree_id: C, ended: false, log_index: 2 },
        ];
        expect(await all(store.trees())).toEqual(expected);
        await scribe.write(store, [], { trees: [{ tree_id: A, state: 'ended' }] });
        expect(await all(store.trees())).toEqual(expected);
      });

      test('more trees than a store reads at a time are listed', async () => {
        const ids = Array.from({ length: 300 }, (_, n) => treeId(n));
        await scribe.write(
          store,
          ids.map((id) => opening(id)),
        );
        expect((await all(store.trees())).map(({ tree_id }) => tree_id)).toEqual(ids);
      });
    });

    describe('one writer', () => {
      test('D13: while one store writes, another gets LEDGER_LOCKED at once; after it was closed, a higher epoch', async () => {
        const second = keep(ledger.open());
        const since = performance.now();
        await expect(second.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
        expect(performance.now() - since).toBeLessThan(1_000);
        await scribe.write(store, [opening(A)]);
        await store.close();
        expect(await second.acquire()).toBeGreaterThan(scribe.epoch);
      });

      test('who acquires again gets a higher epoch, and the former one is over', async () => {
        const batch = scribe.prepare([opening(A)]);
        const epoch = await store.acquire();
        expect(epoch).toBeGreaterThan(batch.epoch);
        await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_CONFLICT'));
        await store.commit({ ...batch, epoch });
        await checkLedger(1);
      });

      test('D13: a writer whose lock was taken by another one can write nothing more', async () => {
        await scribe.write(store, [opening(A)]);
        ledger.loseLock();
        const second = keep(ledger.open());
        const epoch = await second.acquire();
        await expect(scribe.write(store, [audited(A)])).rejects.toEqual(code('LEDGER_CONFLICT'));
        await checkLedger(1);
        scribe.epoch = epoch;
        await scribe.write(second, [audited(A)]);
        await checkLedger(2);
      });

      test('a store that is not the writer cannot commit, whatever epoch it says', async () => {
        const second = keep(ledger.open());
        await expect(second.commit(scribe.prepare([opening(A)]))).rejects.toEqual(code('LEDGER_CONFLICT'));
        await checkLedger(0);
      });
    });

    describe('what is refused', () => {
      test.each<[string, (batch: Batch) => Partial<Batch>]>([
        ['begins after the end', ({ from }) => ({ from: from + 1 })],
        ['begins before the end', ({ from }) => ({ from: from - 1 })],
        ['is of an epoch that is over', ({ epoch }) => ({ epoch: epoch - 1 })],
        ['is of an epoch that never was', ({ epoch }) => ({ epoch: epoch + 1 })],
      ])(
        'S4-86: a batch that %s is LEDGER_CONFLICT: nothing is written, and the store goes on',
        async (_what, wrong) => {
          await scribe.write(store, [opening(A)]);
          const batch = scribe.prepare(stepOf(A), { proposals: [mark(1)] });
          const changed = { ...batch, ...wrong(batch) };
          const refused = { ...changed, head: { ...batch.head, size: changed.from + 9 } };
          await expect(store.commit(refused)).rejects.toEqual(code('LEDGER_CONFLICT'));
          await checkLedger(1);
          expect(await store.proposal(A, proposalId(1))).toBeNull();
          await scribe.write(store, stepOf(A), { proposals: [mark(1)] });
          await checkLedger(10);
        },
      );

      test.each<[string, (batch: Batch) => Partial<Batch>]>([
        ['leaves a gap in a tree', (batch) => renumbered(batch, (seq) => seq + 1)],
        ['repeats an entry of a tree', (batch) => renumbered(batch, (seq) => seq - 1)],
        ['repeats a proposal id', () => ({ proposals: [mark(2), mark(7)] })],
        ['repeats a proposal id in itself', () => ({ proposals: [mark(2), mark(2)] })],
        ['repeats an input id', () => ({ inputs: [{ tree_id: A, input_id: 'mine', seq: 9 }] })],
      ])('S4-86: a batch that %s is refused as a whole, and so is every one after it', async (_what, wrong) => {
        const first = { proposals: [mark(7)], inputs: [{ tree_id: A, input_id: 'mine', seq: 0 }] };
        await scribe.write(store, [opening(A)], first);
        const batch = scribe.prepare([audited(A), answered(A, content('result', 'r'))]);
        await expect(store.commit({ ...batch, ...wrong(batch) })).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
        await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
        await checkLedger(1);
        expect(await store.proposal(A, proposalId(2))).toBeNull();
        expect(await store.artifact('case-0001', sha256('r'))).toBeNull();
      });

      test.each<[string, (batch: Batch) => Partial<Batch>]>([
        ['a head of another size', ({ head }) => ({ head: { ...head, size: head.size + 1 } })],
        [
          'content of an entry that is not there',
          () => ({ artifacts: [{ entry: 9, artifact: content('result', 'r') }] }),
        ],
        [
          'a case id that is a path',
          () => ({ artifacts: [{ entry: 0, artifact: content('result', 'r', '../../etc') }] }),
        ],
        [
          'a proposal id in capitals',
          () => ({ proposals: [{ ...mark(1), proposal_id: proposalId(10).toUpperCase() }] }),
        ],
        ['a proposal id that is none', () => ({ proposals: [{ ...mark(1), proposal_id: 'p1' }] })],
      ])('%s is a bug of the caller: nothing is written, and the store goes on', async (_what, wrong) => {
        const batch = scribe.prepare([opening(A)]);
        await expect(store.commit({ ...batch, ...wrong(batch) })).rejects.toEqual(code('INVARIANT'));
        await checkLedger(0);
        await store.commit(batch);
        await checkLedger(1);
      });

      test('when a commit fails, it is LEDGER_UNAVAILABLE and nothing more is written until the ledger is opened anew', async () => {
        await scribe.write(store, [opening(A)]);
        ledger.breakCommits();
        await expect(scribe.write(store, stepOf(A), { proposals: [mark(1)] })).rejects.toEqual(
          code('LEDGER_UNAVAILABLE'),
        );
        ledger.repair();
        await expect(scribe.write(store, stepOf(A))).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
        await expect(store.acquire()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
        expect(await store.head()).toMatchObject({ size: 1 });
        await store.close();
        await checkLedger(1);
        const second = keep(ledger.open());
        scribe.epoch = await second.acquire();
        await scribe.write(second, stepOf(A), { proposals: [mark(1)] });
        await checkLedger(10);
      });

      test('a store that was closed answers nothing, and can be closed again', async () => {
        const batch = await scribe.write(store, [opening(A)]);
        const iteration = store.log()[Symbol.asyncIterator]();
        await store.close();
        await store.close();
        for (const answer of [
          () => store.acquire(),
          () => store.head(),
          () => store.commit(batch),
          () => iteration.next(),
          () => all(store.tree(A)),
          () => all(store.trees()),
          () => store.artifactsOf(0),
          () => store.artifact(null, sha256('')),
          () => store.proposal(A, proposalId(1)),
          () => store.input(A, 'mine'),
        ]) {
          await expect(answer()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
        }
        await checkLedger(1);
      });
    });

    describe('content', () => {
      test('the content of an entry comes back in its order, whole, with its kind and case', async () => {
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
        const batch = scribe.prepare(drafts);
        const late = { entry: 2, artifact: content('result', 'of the last entry') };
        await store.commit({
          ...batch,
          artifacts: [late, ...contents.map((artifact) => ({ entry: 1, artifact })), ...batch.artifacts],
        });
        const found = await store.artifactsOf(1);
        expect(found.map(({ kind, case_id, bytes }) => ({ kind, case_id, bytes: Buffer.from(bytes) }))).toEqual(
          contents,
        );
        expect(bytesOf(await store.artifactsOf(2))).toEqual(['of the last entry']);
        expect(await store.artifactsOf(0)).toHaveLength(4);
        expect(await store.artifactsOf(99)).toEqual([]);
      });

      test('D14: content is found by case and hash; equal content in two cases is two contents', async () => {
        await scribe.write(store, [
          opening(A),
          answered(A, content('result', 'the same', 'case-1')),
          answered(A, content('result', 'the same', 'case-2')),
          answered(A, content('result', 'the same', 'case-1')),
        ]);
        for (const case_id of ['case-1', 'case-2']) {
          expect(Buffer.from((await store.artifact(case_id, sha256('the same')))!).toString()).toBe('the same');
        }
        for (const case_id of ['case-3', null]) expect(await store.artifact(case_id, sha256('the same'))).toBeNull();
        expect(await store.artifact('case-1', sha256('other'))).toBeNull();
        const cases = [1, 2, 3].map(async (log_index) => (await store.artifactsOf(log_index))[0]?.case_id);
        expect(await Promise.all(cases)).toEqual(['case-1', 'case-2', 'case-1']);
      });

      test.each([INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 2_000_000])(
        'content of %i bytes comes back whole',
        async (size) => {
          const bytes = Uint8Array.from({ length: size }, (_, place) => (place * 31) % 251);
          const large = content('file_content', bytes);
          await scribe.write(store, [opening(A), answered(A, large), answered(A, large)]);
          for (const log_index of [1, 2]) {
            const [found] = await store.artifactsOf(log_index);
            expect(sha256(found!.bytes)).toBe(sha256(bytes));
          }
          expect((await store.artifact('case-0001', sha256(bytes)))?.byteLength).toBe(size);
          await checkLedger(3);
        },
      );

      test('content is found by hash from the first to the last that was committed', async () => {
        await scribe.write(store, [opening(A)]);
        for (let round = 0; round < 3; round += 1) {
          const results = Array.from({ length: 700 }, (_, n) => answered(A, content('result', `${round}:${n}`)));
          await scribe.write(store, results);
          for (const text of [`${round}:0`, `${round}:350`, `${round}:699`, '0:0']) {
            expect(Buffer.from((await store.artifact('case-0001', sha256(text)))!).toString()).toBe(text);
          }
          expect(await store.artifact('case-0001', sha256(`${round}:700`))).toBeNull();
        }
      });

      test('what the caller does to the bytes later does not change what is stored', async () => {
        const bytes = Buffer.from('as committed');
        await scribe.write(store, [opening(A), answered(A, { kind: 'result', case_id: 'case-1', bytes })]);
        bytes.fill(0);
        const [found] = await store.artifactsOf(1);
        expect(Buffer.from(found!.bytes).toString()).toBe('as committed');
        found!.bytes.fill(0);
        expect(bytesOf(await store.artifactsOf(1))).toEqual(['as committed']);
      });
    });

    describe('marks', () => {
      test('C19: a proposal id is remembered per root run', async () => {
        await scribe.write(store, [opening(A), opening(B)], { proposals: [mark(1), mark(2), mark(1, B)] });
        await scribe.write(store, [audited(A)], { proposals: [mark(3)] });
        for (const n of [1, 2, 3]) expect(await store.proposal(A, proposalId(n))).toEqual(mark(n));
        expect(await store.proposal(B, proposalId(1))).toEqual(mark(1, B));
        for (const absent of [() => store.proposal(B, proposalId(2)), () => store.proposal(C, proposalId(1))]) {
          expect(await absent()).toBeNull();
        }
        await expect(store.proposal(A, proposalId(10).toUpperCase())).rejects.toEqual(code('INVARIANT'));
      });

      test('D4: an input id is remembered per tree, with its place', async () => {
        const inputs = [
          { tree_id: A, input_id: 'mine', seq: 0 },
          { tree_id: B, input_id: 'mine', seq: 4 },
          { tree_id: A, input_id: 'MINE', seq: 2 },
        ];
        await scribe.write(store, [opening(A), opening(B)], { inputs });
        for (const { tree_id, input_id, seq } of inputs) expect(await store.input(tree_id, input_id)).toBe(seq);
        expect(await store.input(A, 'other')).toBeNull();
        expect(await store.input(C, 'mine')).toBeNull();
      });
    });
  });
}

function renumbered(batch: Batch, place: (seq: number) => number): Partial<Batch> {
  const entries = batch.entries.map((sealed) => ({
    ...sealed,
    entry: { ...sealed.entry, seq: place(sealed.entry.seq) },
  }));
  return { entries };
}
