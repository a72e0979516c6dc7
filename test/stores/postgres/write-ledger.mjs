// Another process that is the writer of a ledger: it prints its epoch, and holds the lock until it is killed.

import { openPostgresStore } from './postgres-store.js';

const [url, schema, caseKeysDir] = process.argv.slice(2);
const store = await openPostgresStore({ url, schema, caseKeysDir });
process.stdout.write(`${await store.acquire()}\n`);
setInterval(() => undefined, 1_000);
