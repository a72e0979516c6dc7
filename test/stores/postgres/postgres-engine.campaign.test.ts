// The engine and the whole library on a ledger in PostgreSQL.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { ephemeralKey } from '../../../src/stores/keys/session-key.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { embeddedEngine } from '../../../src/engine/embedded.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpike, type Turnpike } from '../../../src/index.js';
import { simulate } from '../../../src/features/simulation/simulate.js';
import { checkArchivable } from '../../../src/features/evidence/archive-ledger.js';
import { withholdByLanes } from '../../../src/runtime/content/lane-withholding.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { openHead } from '../../../src/home/home.js';
import { readLedgerSigner } from '../../../src/home/ledger-key.js';
import { requireSignedHead } from '../../../src/runtime/ledger/ledger-proofs.js';
import { homeInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { treeEngineConformance, World, type EngineHarness } from '../../engine/tree-engine.conformance.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { lineFileOf } from '../../fixtures/forged-evidence.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';
import { proposal } from '../../fixtures/tree.js';
import { END_WRITER, ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

/** The engine of one process. `crash` starts another one: the lock of the former ends with its session. */
async function start(place: LedgerPlace, store: LedgerStore): Promise<EngineHarness> {
  const faulty = new FaultyStore(store);
  const [clock, world] = [new ManualClock(), new World()];
  const externalHeadStore = memoryHeadStore(await store.head());
  const engine = embeddedEngine({
    store: faulty,
    externalHeadStore,
    clock,
    log: winstonLog('silent'),
    effects: world,
    secrets: ephemeralKey(),
    listeners: world.listeners,
    defer: (task) => void setImmediate(task),
    liveTreesMax: 1_024,
  });
  await engine.start();
  return {
    engine,
    store: faulty,
    externalHeadStore,
    clock,
    world,
    crash: async () => {
      await store.close();
      return start(place, await openPostgresStore(place));
    },
    stop: async () => {
      await engine.stop();
      await store.close();
      await place.remove();
    },
  };
}

if (server === null) {
  test.skip('PostgreSQL is not installed', () => undefined);
} else {
  treeEngineConformance('embedded over PostgreSQL', async () => {
    const place = ledgerPlace(server.url);
    return start(place, await createPostgresStore(place));
  });
}

(server === null ? describe.skip : describe)('Turnpike on a ledger in PostgreSQL', () => {
  let place: LedgerPlace;
  let turnpike: Turnpike;

  const folderOf = (name: string): string => join(place.folder, name);
  const openOn = (store: LedgerStore): Promise<Turnpike> => {
    const [keys, state, sandbox] = ['keys', 'state', 'sandbox'].map(folderOf);
    return openTurnpike({ store, keys: keys!, state: state!, sandbox: sandbox!, log: winstonLog('silent') });
  };
  const reopen = async (): Promise<void> => {
    await turnpike.close();
    turnpike = await openOn(await openPostgresStore(place));
  };
  /** Runs an agent that writes a note and reads it. */
  const runAgent = async (case_id: string): Promise<readonly string[]> => {
    const agent = await turnpike.startAgent({ case: case_id });
    const proposals = [
      proposal('WRITE_FILE', { path: '/sandbox/note.md', content: 'Hello.\n' }),
      proposal('READ_FILE', { path: '/sandbox/note.md' }),
      proposal('WRITE_FILE', { path: '/sandbox/script.sh', content: 'no' }),
    ];
    const outcomes: string[] = [];
    for (const one of proposals) {
      const response = await agent.submit(JSON.stringify(one));
      outcomes.push('outcome' in response ? response.outcome : 'none');
    }
    await agent.end();
    return outcomes;
  };

  beforeEach(async () => {
    const base = ledgerPlace(server?.url ?? '');
    place = { ...base, caseKeysDir: join(base.folder, 'keys', 'cases') };
    mkdirSync(folderOf('sandbox'));
    turnpike = await openOn(await createPostgresStore(place));
  });
  afterEach(async () => {
    await turnpike.close();
    await place.remove();
  });

  test('an agent writes and reads; after a restart the ledger verifies and replays', async () => {
    expect(await runAgent('case-0001')).toEqual(['SUCCESS', 'SUCCESS', 'DENIED']);
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
    await reopen();
    expect(await runAgent('case-0001')).toEqual(['SUCCESS', 'SUCCESS', 'DENIED']);
    const verdict = await turnpike.ledger.verify();
    expect(verdict).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true, trees: 2 });
  });

  test('64 agents at once, on a session that is lost meanwhile', async () => {
    const running = Array.from({ length: 64 }, (_, n) => runAgent(`case-${n % 8}`));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await place.exec(END_WRITER);
    const outcomes = await Promise.all(running);
    expect(outcomes).toHaveLength(64);
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
  });

  test('an erased case verifies, and its content is gone', async () => {
    await runAgent('case-0001');
    await turnpike.erase({ case: 'case-0001', actor: 'operator' });
    await reopen();
    expect(await turnpike.ledger.verify()).toMatchObject({ verdict: 'by_hash_alone', problems: [] });
    expect(await runAgent('case-0001')).toEqual(['SUCCESS', 'SUCCESS', 'DENIED']);
  });

  test('an evidence bundle, an export, the inspector and a simulation read it like any other ledger', async () => {
    await runAgent('case-0001');
    const by = { actor: 'anna', role: 'ATTORNEY_ADMIN' };
    const destination = 'bag';
    const run = await turnpike.export({ ...by, case: 'case-0001', reason: 'a request', destination, format: 'folder' });
    const vote = { run: run.run_id, digests: [run.digest ?? ''], decision: 'approve' } as const;
    await turnpike.approve({ ...vote, ...by, actor: 'berta' });
    expect(await run.finished).toMatchObject({ state: 'completed' });
    const source = homeInspectorSource(turnpike.ledger, turnpike.keys);
    const { size } = await turnpike.ledger.head();
    expect((await source.rows(0, size)).rows).toHaveLength(size);
    expect(await source.event(0)).not.toBeNull();
    const policy = shippedPolicy();
    const simulation = await simulate(
      turnpike.ledger.folded,
      () => policy,
      () => undefined,
    );
    expect(simulation).toMatchObject({ flips: { 'new-allow': 0, 'new-deny': 0, 'other-rule': 0 } });
    expect(simulation.decisions).toBeGreaterThan(2);
    await turnpike.close();

    const keys = keyFolder(folderOf('keys'));
    const signer = readLedgerSigner(keys.ledgerKey);
    const { externalHeadStore } = openHead(
      { head: join(folderOf('state'), 'ledger.head'), ...keys },
      { readOnly: true },
    );
    const head = requireSignedHead(await externalHeadStore.read());
    const store = await openPostgresStore({ ...place, readOnly: true });
    const lines: string[] = [];
    await writeEvidence(withholdByLanes(store), head, signer!, (line) => Promise.resolve(void lines.push(line)));
    await store.close();
    const bundle = await openEvidence(lineFileOf(lines.join('')), signer);
    expect(await verifyEvidence(bundle)).toMatchObject({ verdict: 'verified', entries: head.size });
    turnpike = await openOn(await openPostgresStore(place));
  });

  test('an archive is refused before any work', async () => {
    await runAgent('case-0001');
    await turnpike.close();
    const store = await openPostgresStore(place);
    const { externalHeadStore } = openHead(
      { head: join(folderOf('state'), 'ledger.head'), ...keyFolder(folderOf('keys')) },
      { readOnly: true },
    );
    await expect(checkArchivable({ store, externalHeadStore })).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('turnpike home copy'),
    });
    await store.close();
    turnpike = await openOn(await openPostgresStore(place));
  });
});
