import { expect, test } from '@jest/globals';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { Bench } from '../../fixtures/bench.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const ALWAYS = ['ledger-write', 'ledger-read', 'disk', 'policy'];

const benched = async (options: Parameters<typeof Bench.open>[0]): Promise<Turnpike> =>
  (await Bench.open(options)).turnpike;

test.each<readonly [string, () => Promise<Turnpike>, readonly string[]]>([
  ['keys and the clock of this machine', () => openOnMachine(), [...ALWAYS, 'keys', 'clock']],
  ['keys and a clock of the caller', () => benched({}), [...ALWAYS, 'keys']],
  ['neither', () => benched({ store: memoryStore() }), ALWAYS],
])('with %s, the names of the standard checks are taken before the first report', async (_what, open, names) => {
  const turnpike = await open();
  const { readiness } = turnpike;
  for (const name of names) {
    expect(() => readiness.add({ name, run: () => null })).toThrow(`there is a readiness check ${name} already`);
  }
  readiness.add({ name: 'own', run: () => null });
  const { checks } = await readiness.report();
  expect(checks.map(({ name }) => name)).toEqual([...names, 'own']);
  await turnpike.close();
});

const openOnMachine = (): Promise<Turnpike> =>
  openTurnpike({ home: join(tempFolder(), 'home'), log: winstonLog('silent') });

test('a key that is lost before the first report makes the process not ready', async () => {
  const bench = await Bench.open();
  const { keys } = keyFolder(join(bench.home, 'keys'));
  renameSync(keys, `${keys}.away`);
  const { checks } = await bench.turnpike.readiness.report();
  renameSync(`${keys}.away`, keys);
  expect(checks).toContainEqual({ name: 'keys', reason: 'the key of the ledger is missing' });
  await bench.close();
});
