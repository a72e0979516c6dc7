// Histories over PostgreSQL are those of every other store: serial scenarios give the same entries on each engine, and
// the recorded inputs of concurrent workers, decided again, fill an SQLite ledger with the same bytes.

import { afterAll, describe, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { isWithheld } from '../../../src/core/contract/artifact-ref.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { embeddedEngine } from '../../../src/engine/embedded.js';
import { sharedEngine } from '../../../src/engine/shared.js';
import { BatchBuilder } from '../../../src/engine/tick/batch-builder.js';
import { Tree } from '../../../src/kernel/tree.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { recordHistory, SCENARIOS } from '../../engine/serial-histories.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';
import { ledgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

const WORKERS = 3;
const AGENTS = 24;
const CASES = 4;

(server === null ? describe.skip : describe)('histories over PostgreSQL', () => {
  const engines = { 'one exclusive writer': embeddedEngine, 'a worker of several': sharedEngine } as const;

  describe.each(Object.keys(SCENARIOS))('%s', (name) => {
    test.each(Object.entries(engines))('as in memory: %s', async (_engine, engine) => {
      const expected = await recordHistory(name, { store: memoryStore(), engine: embeddedEngine });
      const place = ledgerPlace(server?.url ?? '');
      const store = await createPostgresStore(place);
      expect(await recordHistory(name, { store, engine })).toEqual(expected);
      await place.remove();
    });
  });

  test('recorded inputs of concurrent workers give the same bytes in SQLite', async () => {
    const place = ledgerPlace(server?.url ?? '');
    await (await createPostgresStore(place)).close();
    await runWorkers(place);
    const source = await openPostgresStore({ ...place, readOnly: true });
    const folder = tempFolder('decided');
    const target = createSqliteStore({ file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') });
    const epoch = await target.acquire();
    let entries = 0;
    for await (const { tree_id } of source.trees()) {
      for (const batch of await decideAgain(source, tree_id, epoch)) await target.commit(batch);
      const texts = await textsOf(source, tree_id);
      expect(await textsOf(target, tree_id)).toEqual(texts);
      entries += texts.length;
    }
    expect(entries).toBe((await source.head()).size);
    expect(entries).toBeGreaterThan(AGENTS * 20);
    await Promise.all([source.close(), target.close()]);
    await place.remove();
  });
});

/** Several workers, all on the same cases; remote agents get proposals from every worker. */
async function runWorkers(place: ReturnType<typeof ledgerPlace>): Promise<void> {
  const sandbox = join(place.folder, 'sandbox');
  mkdirSync(sandbox);
  const open = async () => openTurnpike({ store: await openPostgresStore(place), sandbox, log: winstonLog('silent') });
  const workers = await Promise.all(Array.from({ length: WORKERS }, open));
  const worker = (n: number) => workers[n % WORKERS] ?? workers[0]!;
  await Promise.all(
    Array.from({ length: AGENTS }, async (_, n) => {
      const agent = await worker(n).startAgent({ case: `case-${n % CASES}`, link: 'remote' });
      const steps = [
        proposal('WRITE_FILE', { path: `/sandbox/note-${n}.md`, content: 'Hello.' }),
        proposal('READ_FILE', { path: `/sandbox/note-${n}.md` }),
        proposal('LIST_FILES', { path: '/sandbox/' }),
        proposal('READ_FILE', { path: '/etc/passwd' }),
      ];
      const submit = (step: object, at: number) => worker(n + at).submit(agent.run_id, JSON.stringify(step));
      await Promise.all(steps.map(submit));
      await worker(n + 1).remoteAgents.end(agent.run_id);
    }),
  );
  for (const one of workers) await one.close();
  // The last worker integrates what is pending.
  await (await open()).close();
}

/** The kernel decides the recorded inputs of a tree again. @returns one batch for each input */
async function decideAgain(source: LedgerStore, tree_id: string, epoch: number) {
  const tree = new Tree(tree_id);
  const batches = [];
  for await (const { entry, artifacts } of source.histories([{ tree_id, seq: 0 }])) {
    if (entry.type !== 'input') continue;
    const recorded = (JSON.parse(entry.text) as Extract<Entry, { type: 'input' }>).body;
    const materials = artifacts.filter((artifact) => !isWithheld(artifact));
    const decision = tree.decide({ recorded, materials } as Parameters<Tree['decide']>[0]);
    const builder = new BatchBuilder();
    const opened = entry.seq === 0 ? { case_id: 'case_id' in recorded ? recorded.case_id : null } : null;
    // Marks find repeated inputs, and no recorded input is a repetition.
    const others = { inputs: [], recoveryHint: null, snapshot: null };
    builder.add({ tree_id, decisions: [decision], opened, ended: tree.hasEnded, ...others });
    batches.push(builder.build(epoch));
  }
  tree.stop();
  return batches;
}

async function textsOf(store: LedgerStore, tree_id: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const { text } of store.tree(tree_id)) texts.push(text);
  return texts;
}
