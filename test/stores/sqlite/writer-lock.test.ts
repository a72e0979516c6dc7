// The writer lock, against another process (test/fixtures/hold-lock.mjs).

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, audited, opening, scribeOf, treeId } from '../../fixtures/entries.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const HOLD_LOCK = fileURLToPath(new URL('../../fixtures/hold-lock.mjs', import.meta.url));
const A = treeId(1);

describe('the writer lock', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let children: ChildProcess[];

  beforeEach(() => {
    at = ledgerFolder();
    store = createSqliteStore(at);
    children = [];
  });
  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL');
    await store.close();
    at.remove();
  });

  /** Starts another writer. @returns its result for the lock */
  async function another(): Promise<{ child: ChildProcess; says: string }> {
    const child = spawn(process.execPath, [HOLD_LOCK, at.file], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    return { child, says: said.toString().trim() };
  }

  test('D13: while another process holds it, LEDGER_LOCKED comes at once and the ledger can be read', async () => {
    await (await scribeOf(store)).write(store, [opening(A)]);
    await store.close();
    expect((await another()).says).toBe('locked');
    store = openSqliteStore(at);
    await expect(store.acquire()).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    expect(await all(store.log())).toHaveLength(1);
  });

  test('D13: a process killed with SIGKILL releases it', async () => {
    const { child, says } = await another();
    expect(says).toBe('locked');
    await expect(store.acquire()).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await store.acquire()).toBe(1);
  });

  test('D13: while this process holds it, another one does not get it; after close it does', async () => {
    const scribe = await scribeOf(store);
    expect((await another()).says).toBe('busy');
    await scribe.write(store, [opening(A)]);
    // A second store of this process must not drop the lock of the first by opening and closing the file.
    const second = openSqliteStore(at);
    await expect(second.acquire()).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    await second.close();
    expect((await another()).says).toBe('busy');
    await scribe.write(store, [audited(A)]);
    await store.close();
    expect((await another()).says).toBe('locked');
  });

  test('a program that locks the database itself makes a commit fail, and never hang', async () => {
    const scribe = await scribeOf(store);
    const commit = withDatabase(at.file, (db) => {
      db.exec('BEGIN IMMEDIATE');
      return scribe.write(store, [opening(A)]);
    });
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(await store.head()).toMatchObject({ size: 0 });
  });
});
