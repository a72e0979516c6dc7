// Planted faults of a worker. Each replaces a part of the store, of the driver or of the file system. src has no switch
// for them.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import pg, { type QueryConfig } from 'pg';
import { LedgerError } from '../../src/core/errors.js';
import type { ExternalHeadStore } from '../../src/engine/ports/ledger/ledger-store.js';
import type { SharedBatch, SharedLedgerStore } from '../../src/engine/ports/ledger/shared-store.js';
import { addDeed, type Places } from './places.js';
import type { Plant } from './worker-options.js';

interface Parts {
  readonly store: SharedLedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly places: Places;
}

/** Replaces methods of a store. */
const replaced = (store: SharedLedgerStore, methods: Partial<SharedLedgerStore>): SharedLedgerStore =>
  new Proxy(store, {
    get: (target, name): unknown => {
      const value: unknown = Reflect.get({ ...methods }, name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

const isUnknown = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_COMMIT_UNKNOWN';

/** The store of a worker with a planted fault. */
export function plantIn(plant: Plant, { store, externalHeadStore, places }: Parts): SharedLedgerStore {
  switch (plant) {
    case 'no compare-and-set':
      return replaced(store, {
        commitTrees: async (batch) =>
          (await store.commitTrees(batch)).map((status) => (status === 'conflict' ? 'committed' : status)),
      });
    case 'number before the locks':
      // Every tree seems contested, so that the workers commit under its lock.
      return replaced(store, { commitTrees: (batch) => Promise.resolve(batch.trees.map(() => 'conflict' as const)) });
    case 'double integration':
      // All workers integrate, and nothing compares the size of the log (`sql-plants.ts`).
      return replaced(store, { lead: () => Promise.resolve(true) });
    case 'effect before commit':
      return replaced(store, {
        commitTrees: (batch) => {
          charge(places, batch);
          return store.commitTrees(batch);
        },
      });
    case 'interrupted without proof':
      return replaced(store, {
        claimLeases: async (graceMs, limit, except) =>
          (await store.claimLeases(graceMs, limit, except)).map((lease) => ({ ...lease, isDead: true })),
      });
    case 'guard without grace':
      return replaced(store, { claimLeases: (_graceMs, limit, except) => store.claimLeases(0, limit, except) });
    case 'signing before commit':
      return replaced(store, {
        integrate: async (integration) => {
          await externalHeadStore.write(integration.head);
          return store.integrate(integration);
        },
      });
    case 'decided again after a cut':
      return replaced(store, {
        commitTrees: (batch) =>
          store.commitTrees(batch).catch((error: unknown) => {
            if (isUnknown(error)) return batch.trees.map(() => 'conflict' as const);
            throw error;
          }),
      });
    default:
      return store;
  }
}

/** The effect of an intent runs before the intent is durable. */
function charge(places: Places, { trees }: SharedBatch): void {
  for (const { entry } of trees.flatMap(({ entries }) => entries)) {
    if (entry.type !== 'run_created' || entry.body.request?.name !== 'billing.charge') continue;
    addDeed(places, { tool: 'billing.charge', key: entry.body.run_id, what: 'planted' });
  }
}

/** Faults in the modules of this process. */
export function plantInProcess(plant: Plant): void {
  if (plant === 'key by rename') plantRename();
  if (plant === 'number before the locks') plantEarlyNumbers();
}

/** How long the disk takes for a rename, in ms. */
const RENAME_MS = 100;

/** A file that must be created exclusively replaces an existing one. */
function plantRename(): void {
  fs.linkSync = (draft, path) => {
    const copy = `${String(path)}.planted-${process.pid}`;
    fs.copyFileSync(draft, copy);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RENAME_MS);
    fs.renameSync(copy, path);
  };
  syncBuiltinESMExports();
}

/** The setting of a transaction with the number that was drawn for it. The way to the lock takes up to 30 ms. */
const DRAWN = `SELECT set_config('turnpike.drawn', nextval('commit_numbers')::text, true), pg_sleep(random() * 0.03)`;

/** Draws the commit number of a contested tree before the tree is locked. `sql-plants.ts` makes the function use it. */
function plantEarlyNumbers(): void {
  type Query = (this: pg.Client, query: QueryConfig) => Promise<unknown>;
  const query = Reflect.get(pg.Client.prototype, 'query') as Query;
  Reflect.set(pg.Client.prototype, 'query', async function (this: pg.Client, asked: QueryConfig, ...rest: unknown[]) {
    const isLock = typeof asked === 'object' && asked.text.includes('AS locked') && asked.text.includes('FOR UPDATE');
    if (isLock) await query.call(this, { text: DRAWN });
    return Reflect.apply(query, this, [asked, ...rest]) as unknown;
  });
}
