// D19: the package carries a pin manifest for its own policies, so that they are pinned wherever it is installed.
//
// After an edit of a policy file, renew it with
//   TURNPIKE_WRITE_PINS=1 npm test -- test/core/policy/shipped-pins
// and commit both. The pin of a shipped file is its Git blob id: unlike the commit, it is known before the commit.

import { valuesOf } from '../../../src/core/contract/policy/pins.js';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { manifestPolicySource, pinManifest } from '../../../src/home/policy/manifest-policy-source.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { ACTION_POLICIES, CONTRACT_DIR } from '../../fixtures/shipped-policy.js';

const PINS = join(CONTRACT_DIR, 'pins.json');
const RENEW = 'policies changed: renew pins.json with TURNPIKE_WRITE_PINS=1 npm test -- test/core/policy/shipped-pins';

const CODING = 'policy/actions.coding.yaml';
const shippedFile = (path: string): Uint8Array => new Uint8Array(readFileSync(join(CONTRACT_DIR, path)));

const expected = pinManifest(
  readdirSync(join(CONTRACT_DIR, 'policy'))
    .toSorted()
    .map((name) => ({
      path: `policy/${name}`,
      bytes: shippedFile(`policy/${name}`),
      pin: { problem: 'no_source' as const },
    })),
  // The one lint error of the shipped policies, and the reason for it.
  [
    {
      rule: 'action.runs',
      path: CODING,
      sha256: sha256(shippedFile(CODING)),
      reason:
        'This policy is for agents that write source code; where checks run it, the sandbox of the case is the wall.',
    },
  ],
);

if (process.env['TURNPIKE_WRITE_PINS'] === '1') writeFileSync(PINS, `${JSON.stringify(expected, null, 2)}\n`);

test('D19 pins.json lists every shipped policy file as it is', () => {
  const shipped = JSON.parse(readFileSync(PINS, 'utf8')) as unknown;
  // The hint is part of the comparison, so that a failure shows how to continue.
  expect({ shipped, hint: RENEW }).toEqual({ shipped: expected, hint: RENEW });
});

test.each(ACTION_POLICIES)('D19 D20 the shipped policies with %s are pinned without Git', async (actions) => {
  const files = await manifestPolicySource(CONTRACT_DIR, { actions }).load();
  for (const { pin } of valuesOf(files)) {
    expect(pin).toMatchObject({ source: 'manifest', git_sha: expect.stringMatching(/^[0-9a-f]{40}$/u) });
  }
});
