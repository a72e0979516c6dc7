// Loaded before a copy: kills the process right before its n-th operation on a disk or a server. `KILL_AT` is n; the
// number of operations of a whole copy is written to the file `STEPS`.

import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const killAt = Number(process.env.KILL_AT ?? Infinity);
const { writeFileSync } = fs;
let steps = 0;

function counted(object, name) {
  const real = object[name];
  object[name] = function (...given) {
    steps += 1;
    if (steps === killAt) process.kill(process.pid, 'SIGKILL');
    return real.apply(this, given);
  };
}

for (const name of ['linkSync', 'rmSync', 'renameSync', 'fsyncSync', 'mkdirSync']) counted(fs, name);
for (const name of ['copyFile', 'mkdir', 'rm']) counted(fs.promises, name);
syncBuiltinESMExports();
counted(require('better-sqlite3').prototype, 'exec');
counted(require('pg').Client.prototype, 'query');

process.on('exit', () => {
  if (process.env.STEPS !== undefined) writeFileSync(process.env.STEPS, String(steps));
});
