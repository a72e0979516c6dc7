// The SDKs that need a later Node than Turnpike, each in the same scenarios, with that Node as a process of its own.

import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { ROOT } from '../../root.js';

const UNAVAILABLE = 3;

test('0066: tools of the AI SDK 7, the OpenAI Agents SDK and Mastra on Node 22', () => {
  const { status, stderr } = spawnSync(process.execPath, ['test/interfaces/sdk/run-separate.mjs'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (status === UNAVAILABLE) process.stdout.write(stderr);
  else
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(/^Tests: +(\d+) passed, \1 total$/m),
    });
}, 600_000);
