// Loaded before a command: kills the process right before its n-th disk operation. If the process ends normally, it
// writes the list of its disk operations. `KILL_AT` is n, `STEPS` the file of names.

import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const Database = createRequire(import.meta.url)('better-sqlite3');
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

if (process.env.STEPS !== undefined) {
  process.on('exit', () => fs.writeFileSync(process.env.STEPS, JSON.stringify(steps)));
}
