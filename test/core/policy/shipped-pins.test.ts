// D19: the package carries a pin manifest for its own policies, so that they are pinned wherever it is installed.
// After an edit of a policy file, `npm run generate -- pins` renews it; commit both.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { valuesOf } from '../../../src/core/contract/policy/pins.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { shippedPins } from '../../../tools/generate/shipped-pins.js';
import { ACTION_POLICIES, CONTRACT_DIR } from '../../fixtures/shipped-policy.js';

test('D19 pins.json lists every shipped policy file as it is', () => {
  const hint = 'policies changed: npm run generate -- pins';
  const shipped = JSON.parse(readFileSync(join(CONTRACT_DIR, 'pins.json'), 'utf8')) as unknown;
  // The hint is part of the comparison, so that a failure shows how to continue.
  expect({ shipped, hint }).toEqual({ shipped: shippedPins(), hint });
});

test.each(ACTION_POLICIES)('D19 D20 the shipped policies with %s are pinned without Git', async (actions) => {
  const files = await manifestPolicySource(CONTRACT_DIR, { actions }).load();
  for (const { pin } of valuesOf(files)) {
    expect(pin).toMatchObject({ source: 'manifest', git_sha: expect.stringMatching(/^[0-9a-f]{40}$/u) });
  }
});
