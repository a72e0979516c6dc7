// The checks of the simulation find planted faults of a shared store.

import { describe, expect, test } from '@jest/globals';
import type { SharedAppend, SharedBatch, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { simulateCluster } from './cluster-simulation.js';

type Plant = (store: SharedLedgerStore) => SharedLedgerStore;

/** Replaces methods of a store. */
const replaced = (store: SharedLedgerStore, methods: Partial<SharedLedgerStore>): SharedLedgerStore =>
  new Proxy(store, {
    get: (target, name): unknown => {
      const value: unknown = Reflect.get({ ...methods }, name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

/** Changes the appends of every batch on their way to the store. */
const changed = (store: SharedLedgerStore, change: (append: SharedAppend) => SharedAppend): SharedLedgerStore => {
  const changeAll = (batch: SharedBatch): SharedBatch => ({ ...batch, trees: batch.trees.map(change) });
  return replaced(store, {
    commitTrees: (batch) => store.commitTrees(changeAll(batch)),
    commitLocked: async (tree_ids, decide) => {
      const locked = await store.commitLocked(tree_ids, async () => changeAll(await decide()));
      return locked as never;
    },
  });
};

/** A late retry hides some faults in most histories. */
const SEEDS_MAX = 40;

/** Faults of a store that the checks must find. */
const PLANTS: Readonly<Record<string, Plant>> = {
  'calls a lost race committed': (store) =>
    replaced(store, {
      commitTrees: async (batch) =>
        (await store.commitTrees(batch)).map((status) => (status === 'conflict' ? 'committed' : status)),
    }),
  'answers before it has written': (store) =>
    replaced(store, {
      commitTrees: (batch) => {
        setImmediate(() => void store.commitTrees(batch).catch(() => undefined));
        return Promise.resolve(batch.trees.map(() => 'committed' as const));
      },
    }),
  'calls a batch that was sent again a lost race': (store) =>
    replaced(store, {
      commitTrees: async (batch) =>
        (await store.commitTrees(batch)).map((status) => (status === 'present' ? 'conflict' : status)),
    }),
  'takes every worker that is over for dead': (store) =>
    replaced(store, {
      claimLeases: async (graceMs, limit, except) =>
        (await store.claimLeases(graceMs, limit, except)).map((lease) => ({ ...lease, isDead: true })),
    }),
  'forgets the leases of the dead': (store) => replaced(store, { claimLeases: () => Promise.resolve([]) }),
  'does not store the marks of inputs': (store) => changed(store, (append) => ({ ...append, inputs: [] })),
};

/** Faults with which the quota of a case is exceeded, or stays reserved. */
const QUOTA_PLANTS: Readonly<Record<string, Plant>> = {
  'does not store reservations': (store) => changed(store, (append) => ({ ...append, quotas: [] })),
  'does not compare the reservations': (store) =>
    changed(store, (append) => ({ ...append, quotas: append.quotas.map((one) => ({ ...one, isChecked: false })) })),
  'leaves more room than there is': (store) =>
    changed(store, ({ quotas, ...append }) => ({
      ...append,
      quotas: quotas.map((one) => ({ ...one, room: one.room && { bytes: Infinity, files: Infinity } })),
    })),
  'keeps reservations for good': (store) =>
    changed(store, (append) => ({ ...append, quotas: append.quotas.map((one) => ({ ...one, released: [] })) })),
};

describe('planted faults of the quota', () => {
  test.each(Object.entries(QUOTA_PLANTS))('C82: the checks find a store that %s', async (_name, plant) => {
    const found: string[] = [];
    for (let seed = 1; seed <= 12 && found.length === 0; seed += 1) {
      const { violations } = await simulateCluster({ seed, inputs: 150, hasQuota: true, plant });
      found.push(...violations);
    }
    expect(found.some((violation) => /of \d+ (bytes|files)|still reserved/.test(violation))).toBe(true);
  });
});

/**
 * With decision points, because a commit that reserves a part of the quota is decided again after a refusal (W2 of
 * shared-writer.ts), which hides a wrong refusal. A question to a decision point reserves nothing.
 */
describe('planted faults of a shared store', () => {
  test.each(Object.entries(PLANTS))('the checks find a store that %s', async (_name, plant) => {
    const found: string[] = [];
    for (let seed = 1; seed <= SEEDS_MAX && found.length === 0; seed += 1) {
      const { violations } = await simulateCluster({ seed, inputs: 150, hasDecisionPoints: true, plant }).catch(
        (error: unknown) => ({ violations: [String(error)] }),
      );
      found.push(...violations);
    }
    expect(found).not.toEqual([]);
  });
});
