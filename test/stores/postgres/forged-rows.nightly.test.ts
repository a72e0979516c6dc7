// Who can write the database changes the rows that the gate caches, while it runs and between two starts. A request
// then gets the answer that the entries give, or none. Entries that are appended and fold are the exception, which
// the last test shows: docs/trust.md says so.

import { afterAll, describe, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { CodedError } from '../../../src/core/errors.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { openTurnpikeIn, type Turnpike } from '../../../src/host/turnpike.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { random } from '../../fixtures/random.js';
import { proposal } from '../../fixtures/tree.js';
import { ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const FORGERIES = Number(process.env['TURNPIKE_FORGERIES'] ?? 40);
const SEED = Number(process.env['TURNPIKE_SEED'] ?? 1);
const SNAPSHOT_ENTRIES = 8;
const STEPS = 4;
/** A request that waits for so long is stopped by its forged row: the row is put back then, in ms. */
const STOPPED_MS = 3_000;
const MS_MAX = 1_200_000;

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

const MOMENTS = ['trees in memory', 'no tree in memory', 'at a start'] as const;
/** The caches, and the column that names the tree of a row. Snapshots are the most usual one. */
const CACHES = { snapshots: 'tree_id', marks: 'scope', trees: 'tree_id', run_records: 'tree_id' } as const;
type Cache = keyof typeof CACHES;
const open = async (place: LedgerPlace, liveTreesMax: number, keys = 'session-keys'): Promise<Turnpike> => {
  for (const part of ['sandbox', keys]) mkdirSync(join(place.folder, part), { recursive: true, mode: 0o700 });
  const store = await openPostgresStore(place);
  const externalHeadStore = memoryHeadStore(await store.head());
  return openTurnpikeIn(
    {
      ...{ home: null, keys: keyFolder(join(place.folder, keys)), store, externalHeadStore },
      ...{ snapshotEntries: SNAPSHOT_ENTRIES, restarts: 'automatic' as const },
    },
    {
      store,
      sandbox: join(place.folder, 'sandbox'),
      log: winstonLog('silent'),
      liveTreesMax,
      restarts: 'automatic',
      exports: join(place.folder, 'exports'),
    },
  );
};

type Value = string | number | boolean | Buffer | null;
type Row = Readonly<Record<string, Value>>;

const literal = (value: Value | undefined): string => {
  if (value === null || value === undefined) return 'NULL';
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'::bytea`;
  return `'${String(value).replaceAll("'", "''")}'`;
};

/** Another value: of another row, or near to this one. */
function otherValue(value: Value, others: readonly Value[], draw: () => number): Value {
  const swapped = others[Math.floor(draw() * others.length)];
  if (swapped !== undefined && draw() < 1 / 2) return swapped;
  if (typeof value === 'number' || /^-?\d{1,15}$/.test(String(value))) return Number(value) + (draw() < 1 / 2 ? 1 : -1);
  if (typeof value === 'boolean') return !value;
  if (Buffer.isBuffer(value) && value.length > 0) {
    const changed = Buffer.from(value);
    const place = Math.floor(draw() * changed.length);
    changed[place] = (changed[place] ?? 0) ^ 1;
    return changed;
  }
  return value === null ? null : `${String(value).slice(0, -1)}0`;
}

interface Forgery {
  readonly what: string;
  undo(): Promise<void>;
}

/** The text of a snapshot with one number changed, and not encrypted: who writes the database may know it. */
async function craftSnapshot(place: LedgerPlace, tree_id: string, draw: () => number): Promise<Forgery | null> {
  const store = await openPostgresStore({ ...place, readOnly: true });
  const snapshot = await store.snapshots.load(tree_id);
  await store.close();
  if (snapshot === null) return null;
  const found = [...snapshot.text.matchAll(/"(\w+)":(\d+)/g)].filter(([, name]) => name !== 'seq');
  const names = [...new Set(found.map(([, name = '']) => name))];
  // The number of steps shows in each trace.
  const name = draw() < 1 / 2 ? 'steps' : (names[Math.floor(draw() * names.length)] ?? '');
  const text = snapshot.text.replaceAll(
    new RegExp(`"${name}":(\\d+)`, 'g'),
    (_all, value) => `"${name}":${Number(value) + 1}`,
  );
  const hash = sha256(text);
  await place.exec(`UPDATE snapshots SET bytes = ${literal(Buffer.from(text))}, key_no = 0, mac = '${hash}',
    content_sha256 = '\\x${hash}' WHERE tree_id = ${literal(tree_id)}`);
  const remove = `DELETE FROM snapshots WHERE tree_id = ${literal(tree_id)}`;
  return { what: `a snapshot with another ${name}`, undo: () => place.exec(remove).then(() => undefined) };
}

/** Changes one column of one row of a tree, if there is one that takes the value. */
async function forge(place: LedgerPlace, cache: Cache, tree_id: string, draw: () => number): Promise<Forgery | null> {
  const owner = CACHES[cache];
  const rows = (await place.exec(`SELECT ctid::text AS row, * FROM ${cache}`)) as Row[];
  const own = rows.filter((row) => row[owner] === tree_id);
  const row = own[Math.floor(draw() * own.length)];
  if (row === undefined) return null;
  // Another name removes a mark: the request is accepted again then, and `ledger verify` reports it.
  const columns = Object.keys(row).filter(
    (name) => !['row', owner].includes(name) && !(cache === 'marks' && name === 'name'),
  );
  const column = columns[Math.floor(draw() * columns.length)] ?? '';
  const values = rows.map((one) => one[column] ?? null).filter((value) => String(value) !== String(row[column]));
  const value = otherValue(row[column] ?? null, values, draw);
  const names = Object.keys(row).filter((name) => name !== 'row');
  const insert = `INSERT INTO ${cache} (${names.join(', ')}) VALUES (${names.map((name) => literal(row[name])).join(', ')})`;
  // A snapshot gets the hash of its text, as earlier versions had it.
  const hash = cache === 'snapshots' && draw() < 1 / 2 ? `, mac = '${sha256(String(draw()))}'` : '';
  const change = `UPDATE ${cache} SET ${column} = ${literal(value)}${hash} WHERE ctid = '${String(row['row'])}'`;
  const changed = await place.exec(`SET session_replication_role = replica; ${change} RETURNING 1`).catch(() => []);
  if (changed.length === 0) return null;
  const remove = `DELETE FROM ${cache} WHERE ${owner} = ${literal(tree_id)} AND ${keyOf(cache, row)}`;
  return {
    what: `${cache}.${column}: ${String(row[column]).slice(0, 40)} -> ${String(value).slice(0, 40)}`,
    undo: async () => {
      // What the gate has written meanwhile is newer than the row, except for what it never changes.
      const isStored = cache === 'marks' || cache === 'run_records';
      const back = isStored ? `${remove}; ${insert} ON CONFLICT DO NOTHING` : restored(cache, column, row, tree_id);
      await place.exec(`SET session_replication_role = replica; ${back}`);
    },
  };
}

const keyOf = (cache: Cache, row: Row): string => {
  if (cache === 'marks') return `name = ${literal(row['name'])}`;
  return cache === 'run_records' ? `run_id = ${literal(row['run_id'])}` : 'true';
};

const restored = (cache: Cache, column: string, row: Row, tree_id: string): string =>
  cache === 'snapshots'
    ? `DELETE FROM snapshots WHERE tree_id = ${literal(tree_id)}`
    : `UPDATE ${cache} SET ${column} = ${literal(row[column])} WHERE tree_id = ${literal(tree_id)}`;

/** The answer of a request, or `refused` for one that got none. */
async function answerOf(request: Promise<string>): Promise<string> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof CodedError) return 'refused';
    throw error;
  }
}

const text = (action: 'LIST_FILES' | 'WRITE_FILE', args: object): string => JSON.stringify(proposal(action, args));
/** `refused` also for a step that could not be recorded, so that nothing was decided. */
const outcomeOf = (answer: string): string =>
  answer === 'refused' || answer.includes('AUDIT_FAILURE')
    ? 'refused'
    : (JSON.parse(answer) as { readonly outcome: string }).outcome;

const campaign = server === null ? describe.skip : describe;

campaign('who writes the database', () => {
  test(
    `D4, D16: no forged row of a cache changes a decision or an answer, at a start and while the gate runs (${FORGERIES} forgeries)`,
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      await (await createPostgresStore(place)).close();
      const draw = random(SEED);
      const pick = <T>(values: readonly T[]): T => values[Math.floor(draw() * values.length)] as T;
      const counts: Record<string, number> = {};
      for (let count = 0; count < FORGERIES;) {
        const moment = pick(MOMENTS);
        const cache = pick([...(Object.keys(CACHES) as Cache[]), 'snapshots', 'marks'] as const);
        const liveTreesMax = moment === 'no tree in memory' ? 0 : 64;
        let gate = await open(place, liveTreesMax);
        const { run_id, root_run_id } = await gate.startAgent({ link: 'remote', case: 'case-0001' });
        const write = text('WRITE_FILE', { path: '/sandbox/a.md', content: `${count}` });
        const denied = text('WRITE_FILE', { path: '/etc/passwd', content: 'x' });
        const first = await gate.respond(run_id, write, { inputId: 'first' });
        expect(outcomeOf(first)).toBe('SUCCESS');
        const honestRefusal = await gate.respond(run_id, denied, { inputId: 'denied before' });
        expect(outcomeOf(honestRefusal)).not.toBe('SUCCESS');
        for (let step = 0; step < STEPS; step += 1)
          await gate.submit(run_id, text('LIST_FILES', { path: '/sandbox/' }), { inputId: `s${step}` });
        if (moment === 'at a start') await gate.close();
        const isCrafted = cache === 'snapshots' && draw() < 1 / 2;
        const forgery = isCrafted
          ? await craftSnapshot(place, root_run_id, draw)
          : await forge(place, cache, root_run_id, draw);
        if (moment === 'at a start') gate = await open(place, liveTreesMax);
        if (forgery === null) {
          await gate.remoteAgents.end(run_id);
          await gate.close();
          continue;
        }
        count += 1;
        const requests = [
          answerOf(gate.respond(run_id, write, { inputId: 'first' })),
          answerOf(gate.respond(run_id, denied, { inputId: 'denied' })),
          answerOf(gate.respond(run_id, text('LIST_FILES', { path: '/sandbox/' }), { inputId: 'list' })),
        ];
        const all = Promise.all(requests);
        const isStopped = await Promise.race([all.then(() => false), delay(STOPPED_MS, true)]);
        await forgery.undo();
        const [again = '', refusal = '', list = ''] = await all;
        const found = { ...forgery, moment, again: again === first ? 'SUCCESS' : outcomeOf(again) };
        // The same answer to the same request, a denial, and a list: each of them, or none.
        expect({ ...found, isSame: again === first || outcomeOf(again) === 'refused' }).toMatchObject({
          isSame: true,
        });
        expect(['refused', outcomeOf(honestRefusal)]).toContain(outcomeOf(refusal));
        expect(['refused', 'SUCCESS']).toContain(outcomeOf(list));
        const isAnswered = [again, refusal, list].every((answer) => outcomeOf(answer) !== 'refused');
        // A snapshot only saves time, so that a forged one costs only time.
        if (cache === 'snapshots') expect({ ...found, isAnswered }).toMatchObject({ isAnswered: true });
        const kind = `${cache}, ${isStopped ? 'stopped' : isAnswered ? 'answered' : 'refused'}`;
        counts[kind] = (counts[kind] ?? 0) + 1;
        await gate.close();
        const honest = await open(place, 64);
        expect(await answerOf(honest.respond(run_id, write, { inputId: 'first' }))).toBe(first);
        await honest.remoteAgents.end(run_id);
        if (count % 20 === 0) expect(await honest.replay()).toMatchObject({ ok: true, difference: null });
        await honest.close();
      }
      const last = await open(place, 64);
      expect(await last.ledger.verify()).toMatchObject({ verdict: 'verified' });
      await last.close();
      process.stderr.write(`forged rows: ${JSON.stringify(counts)}\n`);
      await place.remove();
    },
    MS_MAX,
  );

  test(
    'entries that fold can be appended without the key of the ledger or of sessions, and no command finds them',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      await (await createPostgresStore(place)).close();
      const gate = await open(place, 64);
      const by = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-0001' } as const;
      const waiting = await gate.export({ ...by, reason: 'audit', destination: 'bag' });
      expect(waiting.digest).not.toBeNull();
      // The program of the attacker is this one, with keys of its own: it appends what an honest one would.
      const attacker = await open(place, 64, 'other-keys');
      const digests = [waiting.digest ?? ''];
      const vote = { run: waiting.run_id, digests, decision: 'approve', actor: 'otto', role: by.role } as const;
      expect(await attacker.approve(vote)).toMatchObject([{ counted: true, rule_id: 'approval.granted' }]);
      await attacker.close();
      expect(await gate.ledger.run(waiting.run_id)).toMatchObject({ status: 'completed' });
      expect(await gate.ledger.verify()).toMatchObject({ verdict: 'verified' });
      expect(await gate.replay()).toMatchObject({ ok: true, difference: null });
      await gate.close();
      await place.remove();
    },
    MS_MAX,
  );
});
