// The floor: the cost of the same durability when it is implemented directly, without any proof.
// One row per step in SQLite (WAL, synchronous=FULL), all callers of one tick in one transaction.

import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import Type from 'typebox';
import { Compile } from 'typebox/compile';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
const O_PATH = 0o10000000;

/** A hand-written check of a proposal. */
export const proposal = Compile(
  Type.Object(
    {
      schema_version: Type.String({ pattern: '^1\\.\\d+\\.\\d+$' }),
      id: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
      reasoning: Type.String({ minLength: 1 }),
      action: Type.String(),
      args: Type.Object({}, { additionalProperties: true }),
    },
    { additionalProperties: false },
  ),
);
const allowed = new Set(['THINK', 'READ_FILE', 'WRITE_FILE', 'DELETE_FILE']);

export class Floor {
  #db;
  #insert;
  #begin;
  #commit;
  #sandbox;
  #waiting = [];
  #scheduled = false;

  constructor(folder, sandbox) {
    this.#db = new Database(join(folder, 'floor.db'));
    this.#db.pragma('page_size = 8192');
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = FULL');
    this.#db.exec('CREATE TABLE log (n INTEGER PRIMARY KEY, text TEXT NOT NULL, sha256 TEXT NOT NULL)');
    this.#insert = this.#db.prepare('INSERT INTO log (text, sha256) VALUES (?, ?)');
    this.#begin = this.#db.prepare('BEGIN IMMEDIATE');
    this.#commit = this.#db.prepare('COMMIT');
    this.#sandbox = sandbox;
  }

  /** One step: parse, check, look up, act, record; resolves after the commit. */
  async step(payload) {
    const value = JSON.parse(payload);
    if (!proposal.Check(value) || !allowed.has(value.action)) throw new Error('the floor takes good proposals only');
    const denied = value.action === 'DELETE_FILE';
    if (value.action === 'WRITE_FILE') await this.#row(payload);
    const result = denied ? null : this.#act(value);
    const response = JSON.stringify({
      proposal_id: value.id,
      action: value.action,
      outcome: denied ? 'DENIED' : 'SUCCESS',
      result,
      error: denied ? { error_code: 'POLICY_VIOLATION', message: 'denied' } : null,
    });
    await this.#row(response);
    return response;
  }

  close() {
    this.#db.close();
  }

  #act({ action, args }) {
    if (action === 'READ_FILE') return { content: this.#read(args.path.slice('/sandbox/'.length)) };
    if (action === 'WRITE_FILE') return this.#write(args.path.slice('/sandbox/'.length), args.content);
    return {};
  }

  #parent(path) {
    let fd = openSync(this.#sandbox, O_PATH | constants.O_DIRECTORY);
    const names = path.split('/');
    const last = names.pop();
    for (const name of names) {
      const next = openSync(`/proc/self/fd/${fd}/${name}`, O_PATH | constants.O_DIRECTORY | O_NOFOLLOW);
      closeSync(fd);
      fd = next;
    }
    return { fd, last };
  }

  #read(path) {
    const { fd, last } = this.#parent(path);
    const held = openSync(`/proc/self/fd/${fd}/${last}`, O_PATH | O_NOFOLLOW);
    const { size } = fstatSync(held);
    const file = openSync(`/proc/self/fd/${held}`, O_RDONLY);
    const bytes = Buffer.alloc(size);
    readSync(file, bytes, 0, size, 0);
    for (const open of [file, held, fd]) closeSync(open);
    return bytes.toString('utf8');
  }

  #write(path, content) {
    const { fd, last } = this.#parent(path);
    const temp = `/proc/self/fd/${fd}/.tmp`;
    const file = openSync(temp, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
    const written = writeSync(file, content);
    fsyncSync(file);
    closeSync(file);
    renameSync(temp, `/proc/self/fd/${fd}/${last}`);
    const folder = openSync(`/proc/self/fd/${fd}/.`, O_RDONLY);
    fsyncSync(folder);
    for (const open of [folder, fd]) closeSync(open);
    return { bytes_written: written };
  }

  #row(text) {
    return new Promise((resolve) => {
      this.#waiting.push({ text, resolve });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    });
  }

  #flush() {
    const rows = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    this.#begin.run();
    for (const { text } of rows) this.#insert.run(text, hash('sha256', text, 'hex'));
    this.#commit.run();
    for (const { resolve } of rows) resolve();
  }
}
