// Runs the service with a home directory of its own. Run it with `node --test`.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

test('an agent changes and reads its record, and no other case sees it', () => {
  const home = mkdtempSync(join(tmpdir(), 'turnpike-'));
  try {
    const service = fileURLToPath(new URL('service.mjs', import.meta.url));
    const printed = execFileSync(process.execPath, [service, home], { encoding: 'utf8' });
    assert.deepEqual(printed.trim().split('\n'), [
      'SUCCESS null',
      'SUCCESS null',
      'SUCCESS [{"id":"t1","title":"Ask for the invoice.","done":true}]',
      'SUCCESS []',
    ]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
