// A service that imports only the library loads no module of a feature that it does not use.

import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../root.js';

/** Loaded although nothing of them is used. Sessions go next: `src/host/wire.ts` and the control socket import them. */
const STILL_LOADED = [
  'src/features/sessions/checks/check-effects.ts',
  'src/features/sessions/checks/reviewers.ts',
  'src/features/sessions/checks/run-spec-command.ts',
  'src/features/sessions/same-start.ts',
  'src/features/sessions/session-commands.ts',
  'src/features/sessions/session-inputs.ts',
  'src/features/sessions/session-reader.ts',
  'src/features/sessions/session-request.ts',
  'src/features/sessions/session-runs.ts',
  'src/features/sessions/spec/json-pointer-lines.ts',
  'src/features/sessions/spec/parse-spec.ts',
  'src/features/sessions/spec/read-spec.ts',
  'src/features/sessions/spec/spec-source.ts',
];

test('opening a fresh home, one step of an agent and closing load only these modules of features', () => {
  const program = join(ROOT, 'tools/loaded-modules.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
  expect([status, stderr]).toEqual([0, '']);
  const lines = stdout.trimEnd().split('\n');
  process.stdout.write(`${lines.at(-1) ?? ''}\n`);
  expect(lines.slice(0, -1)).toEqual(STILL_LOADED);
});
