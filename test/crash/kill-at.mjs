// Loaded before a command: kills the process right before its n-th operation of the disk or of a database. If the
// process ends normally, it writes the list of these operations. `KILL_AT` is n, `STEPS` the file of names.

import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const Database = require('better-sqlite3');
const { Client } = require('pg');
const killAt = Number(process.env.KILL_AT ?? Infinity);
const steps = [];

function pass(name) {
  steps.push(name);
  if (steps.length === killAt) process.kill(process.pid, 'SIGKILL');
}

for (const name of ['linkSync', 'rmSync', 'unlinkSync', 'fsyncSync', 'fdatasync']) {
  const real = fs[name];
  fs[name] = (...given) => {
    pass(name);
    return real(...given);
  };
}
syncBuiltinESMExports();

const handle = await fs.promises.open(import.meta.filename ?? new URL(import.meta.url).pathname);
const fileHandle = Object.getPrototypeOf(handle);
await handle.close();
for (const name of ['sync', 'appendFile']) {
  const real = fileHandle[name];
  fileHandle[name] = function (...given) {
    pass(`file ${name}`);
    return real.apply(this, given);
  };
}

const db = new Database(':memory:');
const statement = Object.getPrototypeOf(db.prepare('SELECT 1'));
db.close();
const { exec } = Database.prototype;
Database.prototype.exec = function (sql) {
  pass(sql.slice(0, 40));
  return exec.call(this, sql);
};
const { run } = statement;
statement.run = function (...given) {
  pass(this.source.slice(0, 40));
  return run.apply(this, given);
};

const { query } = Client.prototype;
Client.prototype.query = function (...given) {
  const text = given[0]?.text ?? given[0];
  if (typeof text === 'string') pass(text.slice(0, 40));
  return query.apply(this, given);
};

if (process.env.STEPS !== undefined) {
  process.on('exit', () => fs.writeFileSync(process.env.STEPS, JSON.stringify(steps)));
}
