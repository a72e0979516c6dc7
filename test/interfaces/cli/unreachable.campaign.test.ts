// A home directory whose owner has no control socket: the command retries for five seconds.

import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { initialised, turnpike } from './fake-io.js';
import { done, PLAIN, putSpec } from './session-fixture.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

test('a session step fails while an unreachable process owns the home directory', async () => {
  const folder = await initialised();
  putSpec(folder, PLAIN);
  await done(folder, ['start', 'plain.json', '--no-stop-on-phase']);
  const contract = join(folder, 'contract');
  const holder = await openTurnpike({ home: join(folder, '.turnpike'), contract, log, control: false });
  try {
    expect(await turnpike(folder, ['session', 'next'])).toMatchObject({ code: 3, stdout: '' });
  } finally {
    await holder.close();
  }
});
