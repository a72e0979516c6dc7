import { expect, test } from '@jest/globals';
import { mkdtempSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTurnpike } from '../../src/runtime/turnpike.js';
import { createSqliteStore, openSqliteStore } from '../../src/adapters/sqlite-ledger-store.js';
import { gitBlobId } from '../../src/adapters/manifest-policy-source.js';
import { createHash } from 'node:crypto';
import { readFileSync, cpSync } from 'node:fs';
import { proposal } from '../fixtures/tree.js';

test('smoke', async () => {
  const home = join(mkdtempSync(join(tmpdir(), 'tp-')), 'home');
  mkdirSync(home, { recursive: true });
  const contract = join(home, 'contract');
  cpSync('policies/contract/v1', contract, { recursive: true });
  writeFileSync(
    join(contract, 'pins.json'),
    JSON.stringify({
      version: 'v1',
      files: ['lanes', 'roles', 'actions'].map((n) => {
        const b = readFileSync(join(contract, 'policy', n + '.yaml'));
        return {
          path: 'policy/' + n + '.yaml',
          git_sha: gitBlobId(b),
          sha256: createHash('sha256').update(b).digest('hex'),
        };
      }),
    }),
  );
  mkdirSync(join(home, 'artifacts'));
  const o = () => ({ file: join(home, 'ledger.db'), artifactsDir: join(home, 'artifacts') });
  const t = await openTurnpike({ store: await createSqliteStore(o()), sandbox: join(home, 'sandbox'), contract });
  const agent = await t.startAgent({});
  mkdirSync(join(home, 'sandbox/case-local'), { recursive: true });
  writeFileSync(join(home, 'sandbox/case-local/a.txt'), 'hello');
  console.log(await agent.respond(JSON.stringify(proposal('READ_FILE', { path: '/sandbox/a.txt' }))));
  console.log(await agent.respond(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/b.txt', content: 'x' }))));
  console.log(await agent.respond('{ bad'));
  let t0 = performance.now();
  for (let i = 0; i < 300; i++) await agent.respond(JSON.stringify(proposal('READ_FILE', { path: '/sandbox/a.txt' })));
  console.log('read/s', 300000 / (performance.now() - t0));
  t0 = performance.now();
  for (let i = 0; i < 100; i++)
    await agent.respond(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/b.txt', content: 'x' + i })));
  console.log('write/s', 100000 / (performance.now() - t0));
  console.log(await agent.respond(JSON.stringify(proposal('FINISH', { response: 'x' }))), await agent.finished);
  const v = await t.ledger.verify();
  console.log(JSON.stringify(v).slice(0, 500), await t.replay());
  const b = await t.startAgent({ role: 'NOPE' });
  console.log(await b.finished);
  const c = await t.startAgent();
  await c.respond('{}');
  await t.close();
  const u = await openTurnpike({ store: await openSqliteStore(o()), sandbox: join(home, 'sandbox'), contract });
  console.log(u.recovery, await u.replay());
  await u.close();
  expect(1).toBe(1);
});
