// A service that imports only the library loads no module of a feature that it does not use.

import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { printFigure } from '../fixtures/campaign.js';
import { ROOT } from '../root.js';

/** The list of features. The shipped policy has approval rules, so the library also loads what counts approvals. */
const ALWAYS_LOADED: readonly string[] = [
  'src/features/approvals/approval-decision.ts',
  'src/features/approvals/approval-requests.ts',
  'src/features/approvals/voter-identity.ts',
  'src/features/declare-features.ts',
];

test('opening a fresh home, one step of an agent and closing load only these modules of features', () => {
  const program = join(ROOT, 'tools/loaded-modules.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
  expect([status, stderr]).toEqual([0, '']);
  const lines = stdout.trimEnd().split('\n');
  printFigure(lines.at(-1) ?? '');
  expect(lines.slice(0, -1)).toEqual(ALWAYS_LOADED);
});
