// A Turnpike over a store of the caller: with a key folder, with local state, with both and with neither.

import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { headFile } from '../../src/stores/ledger/head-file.js';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { overlayFiles } from '../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../src/home/policy/overlay-writer.js';
import { sqliteHistoryCache } from '../../src/stores/sqlite/sqlite-history-cache.js';
import { createSqliteStore, openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { TokenFile } from '../../src/stores/keys/token-file.js';
import { nanoidIds } from '../../src/system/nanoid-ids.js';
import { systemClock } from '../../src/system/system-clock.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { SessionSpec, SpecTask } from '../../src/features/sessions/contract/session-spec.js';
import { openCheckpoint } from '../../src/core/ledger/proof/checkpoint.js';
import { noteVerifier, openNote, type NoteVerifier } from '../../src/core/ledger/proof/signed-note.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import type { Log } from '../../src/engine/ports/log.js';
import { integratedLog } from '../../src/runtime/ledger/integrated-log.js';
import { stateAt } from '../../src/kernel/replay/state-at.js';
import { connectControl } from '../../src/host/control/control-client.js';
import { keyFolder, localState } from '../../src/home/home-paths.js';
import { createHeadSeal } from '../../src/home/ledger-key.js';
import { openStorageEnvironment } from '../../src/host/storage-environment.js';
import { openTurnpike, openTurnpikeIn, type Turnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { serveTurnpike } from '../../src/interfaces/http/serve.js';
import { writeContract } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

const log = winstonLog('silent');
const THINK = (): string => JSON.stringify(proposal('THINK', {}));
const WRITE = (): string => JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
const ANNA = { actor: 'anna', role: 'maintainer' } as const;
const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;

let folder: string;
let open: Turnpike[];
const at = (name: string): string => join(folder, name);
const keys = () => keyFolder(at('keys'));
const state = () => localState(at('state'));
const PARTS = () => ({ keys: at('keys'), state: at('state') });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-parts-'));
  writeContract(at('contract'), {});
  open = [];
});
afterEach(async () => {
  for (const turnpike of open) await turnpike.close();
  rmSync(folder, { recursive: true, force: true });
});

const optionsOf = (store: LedgerStore, over: Partial<TurnpikeOptions>): TurnpikeOptions => ({
  ...{ store, sandbox: at('sandbox'), policies: manifestPolicySource(at('contract')), log, wall: 'off' },
  ...over,
});

async function opened(store: LedgerStore, over: Partial<TurnpikeOptions> = PARTS()): Promise<Turnpike> {
  const turnpike = await openTurnpike(optionsOf(store, over));
  open.push(turnpike);
  return turnpike;
}

async function write(turnpike: Turnpike): Promise<void> {
  const agent = await turnpike.startAgent({ case: 'case-1' });
  expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'SUCCESS' });
  await agent.end();
}

const sqliteFiles = () => ({
  file: at('ledger.db'),
  artifactsDir: at('contents/artifacts'),
  caseKeysDir: keys().caseKeys,
});

/** Opens the same ledger repeatedly, in memory or in SQLite. */
const STORES = {
  memory: () => {
    const memory = new LedgerModel();
    return () => modelStore(memory);
  },
  SQLite: () => {
    return () => (existsSync(at('ledger.db')) ? openSqliteStore(sqliteFiles()) : createSqliteStore(sqliteFiles()));
  },
} as const;

const publicKey = (): NoteVerifier => noteVerifier(readFileSync(keys().ledgerKey.publicKey, 'utf8').trimEnd())!;

describe('with keys and state', () => {
  let next: () => LedgerStore;
  beforeEach(() => {
    next = STORES.memory();
  });

  test.each(['memory', 'SQLite'] as const)(
    'D15 the head file has signed checkpoints of a store in %s',
    async (kind) => {
      next = STORES[kind]();
      const turnpike = await opened(next());
      await write(turnpike);
      await turnpike.close();
      const { note, size } = (await headFile(state().head, createHeadSeal(publicKey())).read())!;
      expect(size).toBeGreaterThan(0);
      expect(openCheckpoint(Buffer.from(note!), publicKey())).toMatchObject({ size });
      const again = await opened(next());
      const anchored = await again.ledger.anchored();
      expect(openCheckpoint(Buffer.from(anchored!.note!), publicKey())).toMatchObject({ size });
      expect(await again.ledger.verify()).toMatchObject({ ok: true });
      expect(await again.replay()).toMatchObject({ ok: true });
    },
  );

  test('D1 the emergency overlay denies from the next step on, and can be lifted', async () => {
    const turnpike = await opened(next());
    const agent = await turnpike.startAgent({ case: 'case-local' });
    expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'SUCCESS' });
    const files = overlayFiles(turnpike.state!.overlay, turnpike.keys!.keys);
    const issued_at_utc = '2026-01-01T00:00:00.000Z';
    const rule = { rule_id: 'deny-1', reason: 'An incident.', action: 'WRITE_FILE' };
    await writeOverlay(files, { issued_at_utc, rules: () => [rule] });
    expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'DENIED', error: { message: 'This is suspended' } });
    await writeOverlay(files, { issued_at_utc, rules: () => [] });
    expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('D13 other processes act through the control socket', async () => {
    const turnpike = await opened(next());
    expect(statSync(state().control).mode & 0o777).toBe(0o600);
    const client = (await connectControl(state().control, null))!;
    const agent = await client.startAgent({ case: 'case-local' });
    expect(await agent.submit(THINK())).toMatchObject({ outcome: 'SUCCESS' });
    await agent.end();
    await client.close();
    const second = await promisify(execFile)(process.execPath, ['-e', ASK, state().control]);
    expect(JSON.parse(second.stdout)).toMatchObject({ ok: true, result: { run_id: expect.any(String) } });
    await turnpike.close();
    expect(existsSync(state().control)).toBe(false);
  });

  test('the HTTP service uses the tokens of the key folder, and shows the public key', async () => {
    const turnpike = await opened(next());
    const tokens = new TokenFile(turnpike.keys!.tokens, systemClock());
    const { token } = tokens.mint({ actor: 'reader', role: 'SANDBOX_AGENT', rights: ['observe'] }, nanoidIds());
    const listen = { host: '127.0.0.1', port: 0 };
    const server = await serveTurnpike({ turnpike, ...listen, tokens, storedTokens: true, log });
    const headers = { authorization: `Bearer ${token}` };
    const info = await fetch(`${server.url}/api/v1/inspector/ledger`, { headers });
    expect(await info.json()).toMatchObject({ key: publicKey().vkey, title: publicKey().name });
    await server.close();
  });
});

const specOf = (tasks: SpecTask[]): SessionSpec => ({
  ...{ spec_version: 1, id: 'spec-a', title: 'Files' },
  phases: [{ id: 'p1', title: 'One', tasks }],
});

/** Starts a session, which issues its first step. */
async function beginSession(turnpike: Turnpike): Promise<{ readonly id: string; readonly proof: string }> {
  const spec = specOf([
    { id: 't1', title: 'First', instruction: 'Write a.md.' },
    { id: 't2', title: 'Second', instruction: 'Write b.md.', depends_on: ['t1'] },
  ]);
  const started = await turnpike.sessions.start({ spec, case: 'case-1', by: ANNA, stopOnPhaseCompletion: false });
  const id = started.data!.session_id;
  const { data } = await turnpike.sessions.next(id, {}, RUNNER);
  return { id, proof: data!.next_step!.step_proof! };
}

/** Requests the step again, and reports it with the returned proof. */
async function reportAgain(turnpike: Turnpike, id: string) {
  const { step_id, type, step_proof, task_id } = (await turnpike.sessions.replay(id, RUNNER)).data!.next_step!;
  const report = { step_id, step_type: type, outcome: 'success', step_proof, task_id };
  return { proof: step_proof, answer: await turnpike.sessions.next(id, { last_step_result: report }, RUNNER) };
}

/** Uses the control socket from a process without this package. */
const ASK = `
  const socket = require('node:net').createConnection(process.argv[1], () =>
    socket.write(JSON.stringify({ id: 1, op: 'start_agent', contract: null, options: {} }) + '\\n'));
  socket.once('data', (line) => { process.stdout.write(line); socket.end(); });
`;

describe('local state', () => {
  test('D15 accepts the head of an existing store, signs it, and logs it once with its size and root', async () => {
    const warned: unknown[] = [];
    const warning: Log = { ...log, warn: (message, fields) => void warned.push([message, fields]) };
    const next = STORES.SQLite();
    const first = await opened(next(), { log: warning });
    await write(first);
    await first.close();
    expect([warned, existsSync(state().state)]).toEqual([[], false]);
    for (let times = 0; times < 2; times += 1) {
      const again = await opened(next(), { ...PARTS(), log: warning });
      const { size, root } = await again.ledger.head();
      expect(warned).toEqual([[expect.stringContaining('no head'), { size, root }]]);
      expect(await again.ledger.anchored()).toMatchObject({ size, note: expect.any(String) });
      expect(await again.ledger.verify()).toMatchObject({ ok: true });
      await again.close();
    }
  });

  test.each([
    ['with a key folder', () => PARTS()],
    ['without keys', () => ({ state: at('state') })],
  ])('D15 refuses a store that is behind its head, %s', async (_what, parts) => {
    const next = STORES.SQLite();
    const first = await opened(next(), parts());
    await first.close();
    cpSync(at('ledger.db'), at('older.db'));
    const second = await opened(next(), parts());
    await write(second);
    await second.close();
    cpSync(at('older.db'), at('ledger.db'));
    await expect(opened(next(), parts())).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
    await expect(opened(memoryStore(), parts())).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
  });

  test('D15 does not accept the head of a store whose end is damaged', async () => {
    const inner = new LedgerModel();
    const first = await opened(modelStore(inner), {});
    await write(first);
    await first.close();
    const store = modelStore(inner);
    const lying = over(store, { head: async () => ({ ...(await store.head()), root: 'f'.repeat(64) }) });
    await expect(opened(lying)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    expect(existsSync(state().head)).toBe(false);
    expect(await (await opened(modelStore(inner))).ledger.verify()).toMatchObject({ ok: true });
  });

  test('D13 is used by one Turnpike at a time, whatever their stores are', async () => {
    const first = await opened(memoryStore());
    await expect(opened(memoryStore())).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    await expect(opened(STORES.SQLite()())).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    expect(existsSync(first.state!.control)).toBe(true);
    await first.close();
    await opened(memoryStore());
  });

  test('has replay points, which the next read of a past state uses', async () => {
    const memory = new LedgerModel();
    const options = optionsOf(modelStore(memory), { ...PARTS(), control: false });
    const turnpike = await openTurnpikeIn(
      { ...(await openStorageEnvironment(options.store!, options)), pointEntries: 40 },
      options,
    );
    open.push(turnpike);
    for (let round = 0; round < 8; round += 1) {
      await write(turnpike);
      await pause(10);
    }
    await turnpike.close();
    const store = modelStore(memory);
    const read: number[] = [];
    const counted = over(store, {
      async *log(from?: number) {
        for await (const entry of store.log(from)) {
          read.push(entry.log_index);
          yield entry;
        }
      },
    });
    const until = (await store.head()).size - 1;
    const cache = sqliteHistoryCache(state().history);
    const answer = await stateAt(integratedLog(counted), cache, { until, pointEntries: 40 });
    await cache.close();
    expect(until).toBeGreaterThan(100);
    expect(Math.min(...read)).toBeGreaterThan(40);
    expect(answer).toEqual(await stateAt(integratedLog(store), null, { until }));
  });

  test('contains the working folders of spec commands, which each opening empties', async () => {
    const left = join(state().scratch, 'turnpike-command-abcdef');
    mkdirSync(left, { recursive: true });
    const turnpike = await opened(memoryStore());
    expect(existsSync(left)).toBe(false);
    const spec = specOf([{ id: 'v1', type: 'verify', title: 'Where', command: ['sh', '-c', 'echo $TMPDIR'] }]);
    const id = (await turnpike.sessions.start({ spec, case: 'case-1', by: ANNA })).data!.session_id;
    const { step_id } = (await turnpike.sessions.next(id, {}, RUNNER)).data!.next_step!;
    const { data } = await turnpike.sessions.verify(id, { step_id }, RUNNER);
    expect(data!.output).toContain(join(state().scratch, 'turnpike-command-'));
    expect(readdirSync(state().scratch)).toEqual([]);
  });
});

/** A store with some of its methods replaced. */
const over = (store: LedgerStore, methods: Partial<LedgerStore>): LedgerStore =>
  new Proxy(store, {
    get: (target, name) => {
      if (name in methods) return Reflect.get(methods, name) as unknown;
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

describe('the key folder', () => {
  test('D14 signs the erasures of an SQLite store, whose case keys may be in it', async () => {
    const turnpike = await opened(STORES.SQLite()(), { keys: at('keys') });
    await write(turnpike);
    expect(readdirSync(keys().caseKeys)).toEqual(['case-1.1.key']);
    await turnpike.erase({ case: 'case-1', actor: 'anna' });
    const [name = ''] = readdirSync(keys().caseKeys);
    expect(name).toBe('case-1.1.erased');
    const note = readFileSync(join(keys().caseKeys, name));
    expect(openNote(note, [publicKey()])?.text).toContain('turnpike erasure\ncase-1\n1\n');
    expect(await turnpike.ledger.verify()).toMatchObject({ verdict: 'by_hash_alone', withheld: { trees: 1 } });
    await turnpike.close();
    const { text } = openNote(note, [publicKey()])!;
    writeFileSync(join(keys().caseKeys, name), text);
    const again = await opened(openSqliteStore(sqliteFiles()), { keys: at('keys') });
    const { problems } = (await again.ledger.verify()) as { readonly problems?: readonly unknown[] };
    expect(JSON.stringify(problems)).toContain('does not say, under the key of this ledger');
  });

  test('the case keys of a store are next to its artifacts unless another folder is configured', async () => {
    const turnpike = await opened(createSqliteStore({ file: at('ledger.db'), artifactsDir: at('deep/artifacts') }), {});
    await write(turnpike);
    expect(readdirSync(at('deep/keys/cases'))).toEqual(['case-1.1.key']);
  });

  test('D15 an unsigned head is signed once there is a key folder', async () => {
    const memory = new LedgerModel();
    const first = await opened(modelStore(memory), { state: at('state') });
    await write(first);
    expect(await first.ledger.anchored()).not.toHaveProperty('note');
    await first.close();
    const second = await opened(modelStore(memory));
    expect(await second.ledger.anchored()).toHaveProperty('note');
  });

  test('D15 signed heads are rejected without the key, and a lost key is an error', async () => {
    const memory = new LedgerModel();
    await (await opened(modelStore(memory))).close();
    const alone = opened(modelStore(memory), { state: at('state') });
    await expect(alone).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    rmSync(keys().ledgerKey.privateKey);
    await expect(opened(modelStore(memory))).rejects.toMatchObject({ code: 'POLICY_UNREADABLE' });
  });
});

describe('each part alone', () => {
  test('neither: heads are unsigned and in memory, and no socket is served', async () => {
    const turnpike = await opened(memoryStore(), {});
    await write(turnpike);
    expect(turnpike).toMatchObject({ home: null, keys: null, state: null, control: null });
    expect(await turnpike.ledger.anchored()).not.toHaveProperty('note');
    expect(readdirSync(folder).sort()).toEqual(['contract', 'sandbox']);
  });

  test('D10 keys only: heads are signed in memory, and a step proof survives a restart', async () => {
    const memory = new LedgerModel();
    const first = await opened(modelStore(memory), { keys: at('keys') });
    expect(first).toMatchObject({ home: null, state: null, control: null, keys: { keys: at('keys') } });
    const { id, proof } = await beginSession(first);
    const { note } = (await first.ledger.anchored())!;
    const { size } = await first.ledger.head();
    expect(openCheckpoint(Buffer.from(note!), publicKey())).toMatchObject({ size });
    await first.close();
    const second = await opened(modelStore(memory), { keys: at('keys') });
    const answer = { error: null, data: { next_step: { task_id: 't2' } } };
    expect(await reportAgain(second, id)).toMatchObject({ proof, answer });
    expect(statSync(keys().sessionKey).mode & 0o777).toBe(0o600);
    expect(readdirSync(at('keys')).sort()).toEqual(['ledger.key', 'ledger.vkey', 'session.key']);
    expect(readdirSync(folder).sort()).toEqual(['contract', 'keys', 'sandbox']);
  });

  test('state only: heads are in its file and the socket is served, but step proofs end with the process', async () => {
    const memory = new LedgerModel();
    const first = await opened(modelStore(memory), { state: at('state') });
    const { id, proof } = await beginSession(first);
    const client = (await connectControl(state().control, null))!;
    expect(await client.isReady()).toBe(true);
    await client.close();
    await first.close();
    const { size } = memory.head;
    expect(await headFile(state().head).read()).toEqual({ size, root: memory.head.root });
    const second = await opened(modelStore(memory), { state: at('state') });
    const again = await reportAgain(second, id);
    expect(again.proof).not.toBe(proof);
    expect(again.answer.error?.code).toBe('STEP_PROOF_MISMATCH');
    await second.close();
    expect(readdirSync(at('state')).sort()).toEqual(['ledger.head', 'scratch', 'state.lock']);
    expect(readdirSync(folder).sort()).toEqual(['contract', 'sandbox', 'state']);
  });

  test("the caller's overlay takes precedence over the file, and needs no folder", async () => {
    const rules = [{ rule_id: 'deny-1', reason: 'An incident.', action: 'WRITE_FILE' }];
    for (const parts of [{}, PARTS()]) {
      const turnpike = await opened(memoryStore(), { ...parts, overlay: { current: () => ({ epoch: 1, rules }) } });
      const agent = await turnpike.startAgent({ case: 'case-local' });
      expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'DENIED' });
      await turnpike.close();
    }
  });

  test('the parts of a home are rejected', async () => {
    for (const parts of [{ keys: at('keys') }, { state: at('state') }]) {
      await expect(openTurnpike({ home: at('home'), ...parts })).rejects.toMatchObject({ code: 'USAGE' });
    }
    expect(existsSync(at('home'))).toBe(false);
  });
});
