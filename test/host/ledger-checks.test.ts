// What an opening checks before recovery: a missing head is accepted if the environment permits it, and logged.

import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { Log } from '../../src/engine/ports/log.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { tempFolder } from '../fixtures/temp-folder.js';

test('D15 an opening that accepts a missing head logs a warning with the size and root of the ledger', async () => {
  const folder = tempFolder('checks');
  const memory = new LedgerModel();
  const warned: unknown[] = [];
  const log: Log = { ...winstonLog('silent'), warn: (message, fields) => void warned.push([message, fields]) };
  const run = async (state: string): Promise<void> => {
    const store = modelStore(memory);
    const turnpike = await openTurnpike({ store, sandbox: join(folder, 'sandbox'), state: join(folder, state), log });
    await (await turnpike.startAgent({ case: 'case-local' })).end();
    await turnpike.close();
  };
  await run('first');
  await run('first');
  expect(warned).toEqual([]);
  const { size, root } = memory.head;
  await run('second');
  expect(warned).toEqual([[expect.stringContaining('no head'), { size, root }]]);
});
