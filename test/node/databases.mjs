// Opens, uses and collects SQLite databases: `node databases.mjs FOLDER COUNT`, where FOLDER has the installed binding.
// Half of them are not closed, so that the garbage collector finds them with their statements, and it often runs
// between two callbacks, when no JavaScript does. A binding that cannot bear that aborts the process.

import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setImmediate, setTimeout } from 'node:timers/promises';

const [folder = '', count = '10000'] = process.argv.slice(2);
const COUNT = Number(count);
const Database = createRequire(`${folder}/`)('better-sqlite3');
const ROWS = 20;
/** Databases between two turns of the event loop. */
const PER_TURN = 5;
/** Objects that fill the space of young objects, so that it is collected soon. */
const GARBAGE = 20_000;

let collected = 0;
const registry = new FinalizationRegistry(() => (collected += 1));
let sum = 0;

function useDatabase(shouldClose) {
  const db = new Database(':memory:');
  registry.register(db, null);
  db.exec('CREATE TABLE t (a)');
  db.transaction(() => {
    for (let row = 0; row < ROWS; row += 1) db.prepare('INSERT INTO t VALUES (?)').run(row);
  })();
  for (const { a } of db.prepare('SELECT a FROM t').iterate()) sum += a;
  if (shouldClose) db.close();
}

let garbage = [];
for (let done = 0; done < COUNT; done += 1) {
  useDatabase(done % 2 === 0);
  if (done % PER_TURN !== 0) continue;
  garbage = Array.from({ length: GARBAGE }, (_, number) => ({ number }));
  await setTimeout(1);
}
garbage.length = 0;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
for (let times = 0; times < 10 && collected < COUNT; times += 1) {
  collect();
  await setImmediate();
}
const expected = (COUNT * ROWS * (ROWS - 1)) / 2;
if (sum !== expected) throw new Error(`read ${sum} instead of ${expected}`);
// The newest may still be on the stack.
if (collected < COUNT - PER_TURN) throw new Error(`only ${collected} of ${COUNT} databases were collected`);
console.log(`${COUNT} databases opened and used, ${collected} collected`);
