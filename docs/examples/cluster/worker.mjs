// One worker of a ledger in PostgreSQL. It serves HTTP on a free port of this machine, and prints its URL.
//
//   node docs/examples/cluster/worker.mjs URL NAME FOLDER
//
// All workers share the database, the keys and the sandbox. The local state is of one worker alone.

import { join } from 'node:path';
import { openTurnpike } from 'turnpike';
import { serveTurnpike, TokenFile } from 'turnpike/http';
import { openPostgresStore } from 'turnpike/postgres';

const [url, name, folder] = process.argv.slice(2);
const keys = join(folder, 'keys');
const turnpike = await openTurnpike({
  store: await openPostgresStore({ url, caseKeysDir: join(keys, 'case-keys') }),
  keys,
  state: join(folder, `state-${name}`),
  sandbox: join(folder, 'sandbox'),
  restarts: 'automatic',
  control: false,
});
const tokens = new TokenFile(turnpike.keys.tokens);
const server = await serveTurnpike({ turnpike, tokens, host: '127.0.0.1', port: 0, storedTokens: true });
console.log(`http://127.0.0.1:${server.port}`);

process.once('SIGTERM', async () => {
  await server.close();
  await turnpike.close();
});
