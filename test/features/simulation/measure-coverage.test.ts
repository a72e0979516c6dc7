// The entries that are counted must be those of the checkpoint, also if a store gives others on the second reading.

import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { integratedLog } from '../../../src/runtime/ledger/integrated-log.js';
import { EMPTY_HEAD } from '../../../src/core/ledger/proof/merkle.js';
import type { JoinedLog } from '../../../src/runtime/ledger/joined-log.js';
import { measureCoverage } from '../../../src/features/simulation/policy-coverage.js';
import { homePaths, openHome, type HomeStores } from '../../../src/home/home.js';
import { finish, initialised, think, turnpike } from '../../interfaces/cli/fake-io.js';

async function ledgerOf(...lines: string[]): Promise<HomeStores> {
  const folder = await initialised();
  expect(await turnpike(folder, ['run', '-'], { stdin: lines.join('\n') })).toMatchObject({ code: 0 });
  return openHome(homePaths(join(folder, '.turnpike')), { readOnly: true });
}

test('rejects entries that do not lead to the checkpoint, and a log that ends before it', async () => {
  const [one, other] = [await ledgerOf(think(), finish()), await ledgerOf(think(), think(), finish())];
  try {
    const [honest, lying] = [integratedLog(one.store), integratedLog(other.store)];
    const head = await one.store.head();
    const readingSecond = (second: JoinedLog['log']): JoinedLog => {
      let readings = 0;
      return { ...lying, begin: EMPTY_HEAD, log: (from) => ((readings += 1) === 1 ? honest.log(from) : second(from)) };
    };
    const mismatch = { code: 'LEDGER_TAMPERED', message: expect.stringContaining('the checkpoint vouches for') };
    const none: JoinedLog['log'] = async function* () {
      // A log without entries.
    };
    await expect(measureCoverage(readingSecond(lying.log), null, head)).rejects.toMatchObject(mismatch);
    await expect(measureCoverage(readingSecond(none), null, head)).rejects.toMatchObject(mismatch);
    const counted = await measureCoverage({ ...honest, begin: EMPTY_HEAD }, null, head);
    expect(counted.policies).toMatchObject([{ trees: 1 }]);
    const root = 'f'.repeat(64);
    await expect(measureCoverage({ ...honest, begin: EMPTY_HEAD }, null, { ...head, root })).rejects.toThrow();
  } finally {
    for (const { store } of [one, other]) await store.close();
  }
});
