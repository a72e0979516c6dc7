// A worker process: a Turnpike on a ledger in PostgreSQL that others write too, behind an endpoint of Restate.
// Arguments: port, database, schema, folder, exchange. Prints a line when it serves.

import { createServer } from 'node:http2';
import { join } from 'node:path';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { openPostgresStore } from '../../../src/stores/postgres/index.js';
import { exchangeFolder, turnpikeService } from '../../../src/interfaces/restate/index.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { openTurnpike } from '../../../src/index.js';

const [port = '', url = '', schema = '', folder = '', exchange = ''] = process.argv.slice(2);
const store = await openPostgresStore({ url, schema, caseKeysDir: join(folder, 'case-keys') });
const turnpike = await openTurnpike({ store, sandbox: join(folder, 'sandbox'), restarts: 'automatic' });
const service = turnpikeService({
  turnpike,
  exchange: exchangeFolder(exchange),
  authorize: () => true,
  log: winstonLog('warn'),
});
createServer(createEndpointHandler({ services: [service] })).listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('serving\n');
});
