// The pin manifest of the policies that the package ships. The pin of a shipped file is its Git blob id: unlike the
// commit, it is known before the commit.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../src/core/contract/hash.js';
import type { PinManifest } from '../../src/core/contract/policy/pins.js';
import { pinManifest } from '../../src/home/policy/manifest-policy-source.js';
import { CONTRACT_DIR } from '../../test/fixtures/shipped-policy.js';

const CODING = 'policy/actions.coding.yaml';
const shippedFile = (path: string): Uint8Array => new Uint8Array(readFileSync(join(CONTRACT_DIR, path)));

/** What `policies/contract/v1/pins.json` has to be for the policy files as they are. */
export const shippedPins = (): PinManifest =>
  pinManifest(
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
