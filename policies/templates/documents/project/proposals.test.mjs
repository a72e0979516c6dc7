// Submits the proposals of the example to the policy in the contract folder. Run it with `node --test`.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openTurnpike } from 'turnpike';

const read = (name) => readFile(new URL(name, import.meta.url), 'utf8');

test('the policy allows note.md, and denies a shell script', async () => {
  const home = await mkdtemp(join(tmpdir(), 'turnpike-'));
  const turnpike = await openTurnpike({ home, contract: 'contract' });
  try {
    const agent = await turnpike.startAgent({ case: 'case-0001' });
    const outcomes = [];
    for (const line of (await read('proposals.jsonl')).trim().split('\n')) {
      outcomes.push((await agent.submit(line)).outcome);
    }
    assert.deepEqual(outcomes, ['SUCCESS', 'DENIED', 'SUCCESS']);
    assert.ok((await turnpike.ledger.verify()).ok);
    assert.ok((await turnpike.replay()).ok);
  } finally {
    await turnpike.close();
    await rm(home, { recursive: true, force: true });
  }
});
