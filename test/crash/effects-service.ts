// An embedding service whose effects can be counted from outside: each leaves a durable line or a counted row, and
// nothing in src knows of them. Each passes the fault points of a victim before, in the middle of and after it.
//
//   billing.charge  appends whenever it is called, and cannot be queried afterwards
//   mail.send       checks first whether it has sent under this key, so it may be called again
//   bank.transfer   appends whenever it is called, and can be queried
//   facts entities  in the ledger's own database
//   orders balances in another SQLite file, whose triggers count every inserted or updated row

import Database from 'better-sqlite3';
import { closeSync, cpSync, fsyncSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import Type from 'typebox';
import { manifestPolicySource, pinManifest } from '../../src/home/policy/manifest-policy-source.js';
import { sqlDatabase } from '../../src/stores/records/sql-database.js';
import type { LedgerRecords, RecordDatabase } from '../../src/engine/ports/effects/records.js';
import { defineTarget, defineTool, type EffectContext } from '../../src/runtime/effects/define-effects.js';
import { homePaths } from '../../src/home/home.js';
import { unapproved } from '../fixtures/unapproved.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import type { Hooks } from './fault-points.js';
import type { Laying } from './ground.js';
import { linesOf, type Places } from './journal.js';

/** Planted faults of the platform or the service. */
export const EFFECTS_PLANTED = [
  'none',
  /** The effect precedes the commit of its intent. */
  'before-commit',
  /** A call that is not idempotent is repeated. */
  'called-again',
  /** A query for the outcome of an effect answers that it has not happened. */
  'guessed',
  /** Rows of the ledger's own database in a separate transaction. */
  'own-outside',
  /** Rows of the other database without the note of their effect. */
  'not-noted',
] as const;
export type EffectsPlanted = (typeof EFFECTS_PLANTED)[number];

/** The setup: the same in the killed process and in the check. */
export interface Play {
  readonly planted?: EffectsPlanted;
  readonly brief?: boolean;
}

/** One action of a tool. */
export interface Deed {
  readonly key: string;
  readonly what: string;
}

const closed = { additionalProperties: false } as const;
export const TOOLS = ['billing.charge', 'mail.send', 'bank.transfer'] as const;
export const OTHER_TABLES = ['orders', 'balances'] as const;
export const OWN_TABLES = ['facts', 'entities'] as const;
export const CASE_AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT', case: 'case-local' } as const;

/** The actions of a tool, as seen from outside. */
export const deedsFile = ({ folder }: Places, tool: string): string => join(folder, `${tool}.jsonl`);
export const recordsFile = ({ folder }: Places): string => join(folder, 'records.db');
const contractIn = ({ folder }: Places): string => join(folder, 'contract');

/** Creates what the service needs besides a home: its policy, and the other database with its counters. */
export function furnishService(places: Places): void {
  const contract = contractIn(places);
  cpSync(join(shippedContract(), 'policy'), join(contract, 'policy'), { recursive: true });
  const files = (['lanes', 'roles', 'actions'] as const).map((name) => {
    const path = `policy/${name}.yaml`;
    const shipped = readFileSync(join(contract, path), 'utf8');
    const bytes = Buffer.from(edited(name, name === 'actions' ? unapproved(shipped) : shipped));
    writeFileSync(join(contract, path), bytes);
    return { path, bytes, pin: { problem: 'never_committed' as const } };
  });
  writeFileSync(join(contract, 'pins.json'), JSON.stringify(pinManifest(files)));
  const db = new Database(recordsFile(places));
  db.exec('CREATE TABLE counted (what TEXT NOT NULL)');
  for (const table of OTHER_TABLES) {
    db.exec(
      `CREATE TABLE ${table} (case_id TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (case_id, id))`,
    );
    for (const event of ['INSERT', 'UPDATE']) {
      db.exec(`CREATE TRIGGER ${table}_${event} AFTER ${event} ON ${table} BEGIN
        INSERT INTO counted VALUES (new.id); END`);
    }
  }
  db.close();
}

function edited(name: 'lanes' | 'roles' | 'actions', text: string): string {
  if (name === 'lanes') return `${text}${LANE}`;
  if (name === 'roles') return `${text}${ROLE}`;
  const actions = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS', 'CREATE_DIRECTORY'];
  return text.replace('  - action: CREATE_DIRECTORY', actions.map((action) => `  - action: ${action}`).join('\n'));
}

const LANE = `
  - lane_id: CASE_WORK
    purpose: Tools, records and files of one case.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [${[...TOOLS, 'sandbox.write_file'].join(', ')}]
      writes:
        - { table: sandbox_files, mode: upsert }
        - { table: facts, mode: append }
        - { table: entities, mode: upsert }
        - { table: orders, mode: append }
        - { table: balances, mode: upsert }
      reads: [facts, entities, orders, balances]
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`;

const ROLE = `
  - role_id: CASE_AGENT
    description: An agent with tools, records and files.
    class: agent
    privileges: { lanes: [CASE_WORK] }
`;

interface Serving extends Pick<Play, 'planted'> {
  readonly places: Places;
  readonly hooks: Hooks;
}

/** The options of a home with this service. */
export function serviceOn(serving: Serving): Pick<Laying, 'service' | 'aroundRecords'> {
  const { places, hooks, planted } = serving;
  const other = hookedDatabase(sqlDatabase({ url: `sqlite:${recordsFile(places)}` }), serving);
  const service = {
    policies: manifestPolicySource(contractIn(places)),
    tools: toolsOf(serving),
    targets: [...OWN_TABLES.map((name) => target(name)), ...OTHER_TABLES.map((name) => target(name, other))],
  };
  const outside = planted === 'own-outside' ? homePaths(places.home).ledger : null;
  return { service, aroundRecords: (own) => hookedRecords(own, hooks, outside) };
}

const Text = Type.String({ maxLength: 80 });

const target = (name: string, database?: RecordDatabase) =>
  defineTarget({
    name,
    record: Type.Object({ id: Text, text: Text }, closed),
    key: ['id'],
    modes: ['append', 'upsert'],
    ...(database === undefined ? {} : { database }),
  });

function toolsOf({ places, hooks, planted }: Serving) {
  const input = Type.Object({ what: Text }, closed);
  const output = Type.Object({ receipt: Text }, closed);
  return TOOLS.map((name) => {
    const file = deedsFile(places, name);
    const run = async ({ what }: { what: string }, { idempotency_key: key }: EffectContext) => {
      hooks.pass('effect.before');
      const early = planted === 'before-commit' && isDone(file, key);
      if (!early && !(name === 'mail.send' && isDone(file, key))) leave(file, { key, what }, hooks);
      hooks.pass('effect.performed');
      await turn();
      hooks.pass('effect.after');
      return { receipt: what };
    };
    const reconcile = ({ what }: { what: string }, { idempotency_key: key }: EffectContext) => {
      hooks.pass('settle.before');
      const found = planted !== 'guessed' && isDone(file, key);
      hooks.pass('settle.after');
      return found ? { done: { receipt: what } } : ('not_executed' as const);
    };
    const idempotent = name === 'mail.send' || planted === 'called-again';
    return defineTool({ name, input, output, idempotent, run, ...(name === 'bank.transfer' ? { reconcile } : {}) });
  });
}

export const deedsOf = (file: string): readonly Deed[] => linesOf(file) as readonly Deed[];
const isDone = (file: string, key: string): boolean => deedsOf(file).some((deed) => deed.key === key);

/** Appends a line and flushes it. In its middle it is written and not yet flushed. */
export function leave(file: string, deed: Deed, hooks: Hooks): void {
  const descriptor = openSync(file, 'a', 0o600);
  try {
    writeSync(descriptor, `${JSON.stringify(deed)}\n`);
    hooks.pass('effect.mid');
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The other database with fault points around its changes; its own commit passes `effect.mid` (victims). */
function hookedDatabase(inner: RecordDatabase, { places, hooks, planted }: Serving): RecordDatabase {
  return {
    open: (targets) => inner.open(targets),
    close: () => inner.close(),
    read: (read) => inner.read(read),
    write: async (write) => {
      hooks.pass('effect.before');
      const result =
        planted === 'not-noted'
          ? writtenBeside(recordsFile(places), write.target.name, write.record)
          : await inner.write(write);
      hooks.pass('effect.performed');
      await turn();
      hooks.pass('effect.after');
      return result;
    },
    settle: async (write) => {
      hooks.pass('settle.before');
      const result = await inner.settle(write);
      hooks.pass('settle.after');
      return result;
    },
  };
}

/** Rows in the ledger's own database, where executing means waiting for the commit. */
const hookedRecords = (inner: LedgerRecords, hooks: Hooks, outside: string | null): LedgerRecords => ({
  open: (targets) => {
    inner.open(targets);
  },
  read: (read) => inner.read(read),
  abandon: () => {
    inner.abandon();
  },
  get dirty() {
    return inner.dirty;
  },
  write: (write) => {
    hooks.pass('effect.before');
    const { target: to, record } = write;
    const result = outside === null ? inner.write(write) : writtenBeside(outside, `records_${to.name}`, record);
    hooks.pass('effect.performed');
    return result;
  },
});

function writtenBeside(file: string, table: string, { id, text }: Readonly<Record<string, unknown>>) {
  const db = new Database(file);
  try {
    db.prepare(`INSERT INTO ${table} (case_id, id, text) VALUES ('case-local', ?, ?)`).run(id, text);
    return { status: 'done', result: { written: 1 } } as const;
  } catch {
    return { status: 'failed', cause: 'INVALID_RECORD' } as const;
  } finally {
    db.close();
  }
}
