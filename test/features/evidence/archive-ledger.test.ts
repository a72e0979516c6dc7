// Archiving with a running library, in memory and in SQLite: its effects on trees, cases, and time travel.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createArchiveDraft } from '../../../src/stores/ledger/archive-file.js';
import { hashFile } from '../../../src/system/files/hash-file.js';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { noteSigner, type NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { LineFile } from '../../../src/engine/ports/ledger/line-file.js';
import { archiveLedger, checkArchivable, type ArchiveResult } from '../../../src/features/evidence/archive-ledger.js';
import { openEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { generateLedgerKey } from '../../../src/home/ledger-key.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const PROPOSAL = { schema_version: '1.0.0', reasoning: 'Because.', action: 'THINK', args: {} };
const payload = (n: number): string =>
  JSON.stringify({ ...PROPOSAL, id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}` });
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

let folder: string;
let signer: NoteSigner;
let files: LineFile[];
beforeEach(() => {
  folder = tempFolder('archiving');
  files = [];
  signer = noteSigner(generateLedgerKey('example.org/log'))!;
});
afterEach(async () => {
  for (const file of files) await file.close();
  rmSync(folder, { recursive: true, force: true });
});

const STORES: Readonly<Record<string, () => () => LedgerStore>> = {
  memory: () => {
    const state = new LedgerModel();
    return () => modelStore(state);
  },
  SQLite: () => {
    const at = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') };
    void createSqliteStore(at).close();
    return () => openSqliteStore(at);
  },
};

describe.each(Object.keys(STORES))('a ledger in %s', (kind) => {
  let open: () => LedgerStore;
  let there: Turnpike;
  const begin = async (): Promise<void> => {
    there = await openTurnpike({ store: open(), sandbox: join(folder, 'sandbox'), exports: folder, log: quiet });
  };
  /** One run tree of a case. @returns its run and the response */
  const work = async (id: string, n: number) => {
    const agent = await there.startAgent({ case: id });
    const response = await agent.submit(payload(n), { inputId: 'mine' });
    await agent.end();
    return { agent, said: response };
  };
  const archive = async (name: string): Promise<ArchiveResult> => {
    await there.close();
    const store = open();
    const epoch = await store.acquire();
    const externalHeadStore = memoryHeadStore(await store.head());
    const done = await archiveLedger({ store, epoch, externalHeadStore, signer }, null, () =>
      createArchiveDraft(join(folder, name)),
    );
    await store.close();
    await begin();
    return done;
  };
  const opened = async (name: string) => {
    const path = join(folder, name);
    const file = await openLineFile(path);
    files.push(file);
    return { name, sha256: await hashFile(path), evidence: await openEvidence(file, signer) };
  };

  beforeEach(async () => {
    open = STORES[kind]!();
    await begin();
  });
  afterEach(() => there.close());

  test('C19: continues after archiving: ids of archived trees stay used, and both parts verify as one', async () => {
    const { agent } = await work('case-1', 1);
    const first = await archive('one');
    expect(first).toMatchObject({ from: 0, trees: 1, held: null, tidied: true });
    await work('case-2', 2);
    const second = await archive('two');
    expect(second).toMatchObject({ from: first.to, trees: 1 });
    await work('case-3', 3);
    const { ledger } = there;
    expect(await ledger.verify()).toMatchObject({
      ...{ ok: false, verdict: 'by_hash_alone', trees: 1, archived: second.to },
      ...{ withheld: { contents: 0 }, problems: [] },
    });
    const archives = [await opened('one'), await opened('two')];
    expect(await ledger.verify({ archives })).toMatchObject({ ok: true, trees: 3, root: expect.any(String) });
    expect(await ledger.verify({ archives: archives.slice(0, 1) })).toMatchObject({
      ok: false,
      problems: [{ rule: 'archive.missing', kind: 'missing' }],
    });
    expect(await there.replay()).toMatchObject({
      ...{ ok: false, verdict: 'by_hash_alone', trees: 1, archived: second.to, difference: null },
    });
    // The response to a repeated request is in the archive now.
    const archived = expect.objectContaining({ code: 'LEDGER_ARCHIVED' });
    await expect(there.submit(agent.run_id, payload(1), { inputId: 'mine' })).rejects.toEqual(archived);
    await expect(there.agent(agent.run_id)).rejects.toEqual(archived);
    await expect(there.replay(agent.run_id)).rejects.toEqual(archived);
    await expect(
      there.resolve({ run: agent.run_id, outcome: 'done', actor: 'person-1', role: 'ATTORNEY_ADMIN' }),
    ).rejects.toEqual(archived);
    expect(await ledger.run(agent.run_id)).toMatchObject({ run_id: agent.run_id, status: 'completed' });
    // The engine still works.
    expect((await work('case-1', 4)).said).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('operations on a whole case are refused if a part of it is archived', async () => {
    await work('case-1', 1);
    await archive('one');
    await work('case-1', 2);
    await work('case-2', 3);
    const by = { actor: 'person-1', role: 'ATTORNEY_ADMIN', reason: 'because', destination: join(folder, 'bag') };
    await expect(there.export({ ...by, case: 'case-1' })).rejects.toMatchObject({ code: 'LEDGER_ARCHIVED' });
    const other = await there.export({ ...by, case: 'case-2' });
    expect(other.run_id).toMatch(/^run_/);
  });

  test('U-06: time travel starts at the beginning of the ledger, and counts what was before', async () => {
    await work('case-1', 1);
    const { to } = await archive('one');
    const { agent } = await work('case-2', 2);
    const last = (await there.ledger.replay()).entries + to - 1;
    const state = await there.ledger.stateAt({ until: last });
    expect(state.trees).toEqual({ begun: 2, ended: 2 });
    expect(new Set(state.runs.map(({ tree_id }) => tree_id))).toEqual(new Set([agent.root_run_id]));
    await expect(there.ledger.stateAt({ until: to - 1 })).rejects.toMatchObject({ code: 'LEDGER_ARCHIVED' });
  });

  test('if the log does not match its head, nothing is archived and no file remains', async () => {
    await work('case-1', 1);
    await there.close();
    const store = open();
    const epoch = await store.acquire();
    const head = await store.head();
    const forged = new FaultyStore(store);
    forged.head = () => Promise.resolve({ ...head, size: 3 });
    const archivable = { store: forged, epoch, externalHeadStore: memoryHeadStore(head), signer };
    const done = archiveLedger(archivable, null, () => createArchiveDraft(join(folder, 'one')));
    await expect(done).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    expect(await store.archives.parts()).toEqual([]);
    await store.close();
    await begin();
    await expect(openLineFile(join(folder, 'one'))).rejects.toMatchObject({ code: 'USAGE' });
  });
});

test('of two ledgers archived to one file name at once, one succeeds and the other loses nothing', async () => {
  const path = join(folder, 'one');
  const drafts = [await createArchiveDraft(path), await createArchiveDraft(path)] as const;
  await drafts[0].write('of the first\n');
  await drafts[1].write('of the second\n');
  for (const draft of drafts) await draft.read();
  await expect(drafts[0].publish()).rejects.toMatchObject({ code: 'USAGE' });
  await drafts[0].close();
  await drafts[1].publish();
  await drafts[1].close();
  expect(readFileSync(path, 'utf8')).toBe('of the second\n');
  expect(readdirSync(folder)).toEqual(['one']);
});

test('a store that cannot be archived is refused before anything is read or written', async () => {
  class Unarchivable extends ForwardingStore {
    override get archives(): LedgerStore['archives'] {
      return { ...this.inner.archives, obstacle: 'this store keeps its entries: copy the ledger' };
    }
  }
  const store = new Unarchivable(memoryStore());
  const epoch = await store.acquire();
  const externalHeadStore = {
    ...memoryHeadStore(await store.head()),
    read: () => Promise.reject(new Error('it was read')),
  };
  const draft = () => Promise.reject(new Error('a file was made'));
  const refused = { code: 'LEDGER_UNAVAILABLE', message: 'this store keeps its entries: copy the ledger' };
  await expect(checkArchivable({ store, externalHeadStore })).rejects.toMatchObject(refused);
  await expect(archiveLedger({ store, epoch, externalHeadStore, signer }, null, draft)).rejects.toMatchObject(refused);
  await store.close();
});
