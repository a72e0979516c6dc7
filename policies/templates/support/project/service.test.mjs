// Runs the service with a home directory of its own. Run it with `node --test`.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

test('a refund happens once, and only after an approval', () => {
  const home = mkdtempSync(join(tmpdir(), 'turnpike-'));
  try {
    const service = fileURLToPath(new URL('service.mjs', import.meta.url));
    const printed = execFileSync(process.execPath, [service, home], { encoding: 'utf8' });
    assert.deepEqual(printed.trim().split('\n'), [
      'DENIED: This needs an approval; 0 refunded',
      'SUCCESS: executed; 1 refunded',
    ]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
