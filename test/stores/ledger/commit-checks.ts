// The promises of a store about commits, and about reads after them, as checks for any store. They must also find every
// fault of a store that has one.

import { expect } from '@jest/globals';
import { extendHead } from '../../../src/core/ledger/proof/merkle.js';
import type { Batch, PendingAppend } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, answered, audited, content, opening, proposalId } from '../../fixtures/entries.js';
import type { CommitGround } from './commit-environment.js';
import { A, at, B, C, code, mark, stepOf } from './ledger-bench.js';

export interface CommitCheck {
  readonly name: string;
  readonly run: (ground: CommitGround) => Promise<void>;
}

const conflict = code('LEDGER_CONFLICT');

/** Two trees of one case, one of another and one without a case, with steps in them. */
async function layTrees(ground: CommitGround): Promise<void> {
  const { scribe } = ground;
  await ground.commit(scribe.next([opening(A, 'case-1'), ...stepOf(A), opening(B, 'case-2')]));
  await ground.commit(
    scribe.next([opening(C, 'case-1'), ...stepOf(B)], {
      proposals: [mark(1), mark(2, B)],
      inputs: [
        { tree_id: C, input_id: 'mine', seq: 0 },
        { tree_id: B, input_id: 'mine', seq: 1 },
      ],
    }),
  );
  await ground.commit(scribe.next([audited(A), ...stepOf(C, 1), ...stepOf(A, 2)], { proposals: [mark(3)] }));
}

const one = async (ground: CommitGround): Promise<void> => {
  await layTrees(ground);
  await ground.auditTrees();
};

const RESENDING: readonly CommitCheck[] = [
  {
    name: 'an acknowledged batch is in its trees, complete and in order',
    run: one,
  },
  {
    name: 'a repeated batch is reported as committed, and nothing is written',
    run: async (ground) => {
      await layTrees(ground);
      const batch = ground.scribe.next([audited(A), ...stepOf(B, 5)], {
        proposals: [mark(7)],
        inputs: [{ tree_id: A, input_id: 'again', seq: 20 }],
      });
      const first = await ground.commit(batch);
      expect(await ground.send(batch)).toEqual(first);
      await ground.commit(ground.scribe.next([audited(A)]));
      const late = await ground.send(batch);
      expect(late.first_log_indexes).toEqual(first.first_log_indexes);
      await ground.audit();
    },
  },
  {
    name: 'a batch that is repeated after its epoch ended conflicts',
    run: async (ground) => {
      const batch = ground.scribe.next([opening(A)]);
      await ground.commit(batch);
      ground.scribe.epoch = await ground.store.acquire();
      await expect(ground.send(batch)).rejects.toEqual(conflict);
      await ground.commit(ground.scribe.next([audited(A)]));
      await ground.audit();
    },
  },
  {
    name: 'a batch of which only one append is committed conflicts, and nothing of it is written',
    run: async (ground) => {
      const first = ground.scribe.next([opening(A)]);
      await ground.commit(first);
      const other = ground.scribe.prepare([opening(B)]);
      const mixed: Batch = { epoch: ground.scribe.epoch, trees: [...first.trees, ...other.trees] };
      await expect(ground.send(mixed)).rejects.toEqual(conflict);
      await ground.audit();
    },
  },
  {
    name: 'different entries at the same position of a tree conflict, and nothing of them is written',
    run: async (ground) => {
      await layTrees(ground);
      const lost = ground.scribe.prepare([audited(A, 'deny'), audited(B)], { proposals: [mark(9)] });
      await ground.commit(ground.scribe.next([audited(A, 'allow')]));
      await expect(ground.send(lost)).rejects.toEqual(conflict);
      expect(await ground.store.marks([{ root_run_id: A, proposal_id: proposalId(9) }])).toEqual([null]);
      await ground.audit();
    },
  },
];

const INDEPENDENT: readonly CommitCheck[] = [
  {
    name: 'batches of different trees commit in either order',
    run: async (ground) => {
      await layTrees(ground);
      for (let round = 0; round < 6; round += 1) {
        const batches = [A, B, C].map((tree_id) => ground.scribe.next(stepOf(tree_id, 10 + round)));
        const order = round % 2 === 0 ? batches : batches.toReversed();
        await Promise.all(order.map((batch) => ground.commit(batch)));
      }
      await ground.audit();
    },
  },
  {
    name: 'of two batches that continue a tree at the same position, one commits and the other conflicts',
    run: async (ground) => {
      await layTrees(ground);
      const rivals = [ground.scribe.prepare([audited(A, 'allow')]), ground.scribe.prepare([audited(A, 'deny')])];
      const ends = await Promise.allSettled(rivals.map((batch) => ground.send(batch)));
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(ends.filter(({ status }) => status === 'rejected')).toMatchObject([{ reason: conflict }]);
      const winner = rivals[ends.findIndex(({ status }) => status === 'fulfilled')];
      ground.expectCommitted(winner!);
      await ground.audit();
    },
  },
  {
    name: 'the result of a commit contains the first log index of each append',
    run: async (ground) => {
      await layTrees(ground);
      const batch = ground.scribe.next([...stepOf(B, 3), audited(A)]);
      await ground.commit(batch);
      await ground.integrate();
      const { head, first_log_indexes: firsts } = await ground.send(batch);
      expect(head).toEqual(await ground.store.head());
      const log = await all(ground.store.log());
      for (const [place, { tree_id, from, entries }] of batch.trees.entries()) {
        const begin = firsts?.[place] ?? -1;
        const found = log.slice(begin, begin + entries.length);
        expect(found.map((entry) => [entry.tree_id, entry.seq])).toEqual(entries.map((_, n) => [tree_id, from + n]));
      }
    },
  },
];

const READING: readonly CommitCheck[] = [
  {
    name: 'several marks are looked up in one call, in order, with null for a missing one',
    run: async (ground) => {
      await layTrees(ground);
      const keys = [
        { tree_id: B, input_id: 'mine' },
        { root_run_id: A, proposal_id: proposalId(3) },
        { tree_id: A, input_id: 'mine' },
        { tree_id: C, input_id: 'mine' },
        { root_run_id: B, proposal_id: proposalId(2) },
        { root_run_id: B, proposal_id: proposalId(1) },
        { tree_id: B, input_id: 'mine' },
      ];
      const mine = { tree_id: B, input_id: 'mine', seq: 1 };
      const found = await ground.store.marks(keys);
      expect(found).toEqual([mine, mark(3), null, { ...mine, tree_id: C, seq: 0 }, mark(2, B), null, mine]);
      expect(await ground.store.marks([])).toEqual([]);
      await ground.auditMarks();
    },
  },
  {
    name: 'the returned content belongs to the given entry, even if the given log index is wrong',
    run: async (ground) => {
      await layTrees(ground);
      await ground.commit(
        ground.scribe.next([answered(A, content('result', 'of A', 'case-1')), answered(B, content('result', 'of B'))]),
      );
      await ground.auditContent();
      await ground.integrate();
      await ground.auditContent();
      expect(await ground.store.artifactsOf(at(A, 999))).toEqual([]);
      expect(await ground.store.artifactsOf({ tree_id: 'run_nowhere', seq: 0, log_index: 0 })).toEqual([]);
    },
  },
  {
    name: 'the trees of a case are found, ended or not, in the order in which they were opened',
    run: async (ground) => {
      await layTrees(ground);
      const ids = async (case_id: string) =>
        (await ground.store.treesOf(case_id)).map(({ tree_id, ended }) => [tree_id, ended]);
      expect(await ids('case-1')).toEqual([
        [A, false],
        [C, false],
      ]);
      await ground.commit(ground.scribe.next([audited(A)], { ended: [A] }));
      expect(await ids('case-1')).toEqual([
        [A, true],
        [C, false],
      ]);
      expect([await ids('case-2'), await ids('case-3')]).toEqual([[[B, false]], []]);
    },
  },
  {
    name: 'open trees are listed with their recovery hints, and ended ones are not',
    run: async (ground) => {
      await layTrees(ground);
      const wake_at = '2026-01-02T03:04:05.678Z';
      const recoveryHint = { unfinished: false, wake_at };
      await ground.commitWith([audited(B)], () => ({ recoveryHint }));
      await ground.commit(ground.scribe.next([audited(B), audited(A)], { ended: [A] }));
      const found = (await all(ground.store.openTrees())).toSorted((x, y) => (x.tree_id < y.tree_id ? -1 : 1));
      expect(found).toEqual([
        { tree_id: B, ...recoveryHint },
        { tree_id: C, unfinished: true, wake_at: null },
      ]);
      await ground.commitWith([audited(C)], () => ({ ended: true, recoveryHint }));
      expect((await all(ground.store.openTrees())).map(({ tree_id }) => tree_id)).toEqual([B]);
    },
  },
  {
    name: 'histories of several trees come tree by tree, from the given positions, with their content',
    run: async (ground) => {
      await layTrees(ground);
      await ground.auditHistories();
    },
  },
];

const INTEGRATING: readonly CommitCheck[] = [
  {
    name: 'integrated entries are in the log once, in the order of their trees',
    run: async (ground) => {
      await layTrees(ground);
      for (let round = 0; round < 4; round += 1) {
        const batches = [A, B, C].map((tree_id) => ground.scribe.next(stepOf(tree_id, 20 + round)));
        await Promise.all([...batches.map((batch) => ground.commit(batch)), ground.integrate()]);
      }
      await ground.auditLog();
    },
  },
  {
    name: 'appends are pending in the order of their tree; none is pending if commits integrate',
    run: async (ground) => {
      await layTrees(ground);
      const pending = await ground.store.pending(1_000);
      if (ground.integrates) {
        expect(pending).toEqual([]);
        return;
      }
      expect(await ground.store.head()).toMatchObject({ size: 0 });
      expect(await all(ground.store.log())).toEqual([]);
      expect(await ground.store.pending(2)).toEqual(pending.slice(0, 2));
      for (const tree_id of [A, B, C]) {
        const leaves = pending.filter((append) => append.tree_id === tree_id).flatMap((append) => append.leaf_hashes);
        expect(leaves).toEqual(ground.entriesOf(tree_id).map(({ leaf_hash }) => leaf_hash));
      }
      const numbers = pending.map(({ commit_no }) => commit_no);
      expect(numbers).toEqual(numbers.toSorted((x, y) => x - y));
    },
  },
  {
    name: 'an integration at another size of the log, with a gap, or repeated, is refused',
    run: async (ground) => {
      await layTrees(ground);
      if (ground.integrates) {
        const { size, ...head } = await ground.store.head();
        expect(await ground.sendIntegration({ from: size + 1, appends: [], head: { size, ...head } })).toBe(false);
        return;
      }
      const invariant = code('INVARIANT');
      const pending = await ground.store.pending(1_000);
      const [first, ...others] = pending as [PendingAppend, ...PendingAppend[]];
      await expect(ground.integrateThese(others)).rejects.toEqual(invariant);
      await expect(ground.integrateThese([first, first])).rejects.toEqual(invariant);
      expect(await ground.integrateThese([first])).toBe(true);
      await expect(ground.integrateThese([first])).rejects.toEqual(invariant);
      const stale = { from: 0, appends: others, head: extendHead(await ground.store.head(), []) };
      expect(await ground.sendIntegration(stale)).toBe(false);
      await ground.auditLog();
    },
  },
];

export const COMMIT_CHECKS: readonly CommitCheck[] = [...RESENDING, ...INDEPENDENT, ...READING, ...INTEGRATING];
