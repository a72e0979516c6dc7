// The key of a case is replaced while its run trees are live and other work goes on in the same process. C1 and C2 are
// invariants of rotate-case-keys.ts.

import { describe, expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { turnpike as command } from '../../interfaces/cli/fake-io.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const BY = { actor: 'otto operator', role: 'operator' };
const CASE = 'case-0001';

const open = async (folder: string): Promise<Turnpike> =>
  openTurnpike({
    home: join(folder, '.turnpike'),
    policies: manifestPolicySource(join(folder, 'contract')),
    log: winstonLog('silent'),
    control: false,
  });
const write = (path: string, text: string): string => JSON.stringify(proposal('WRITE_FILE', { path, content: text }));

describe('rotateCaseKeys', () => {
  test('C1 C2: a live agent of the case goes on before, during and after it, and nothing is lost', async () => {
    const folder = tempFolder();
    expect(await command(folder, ['init', '--template', 'reference'])).toMatchObject({ code: 0 });
    const turnpike = await open(folder);
    const agent = await turnpike.startAgent({ case: CASE });
    for (let at = 0; at < 30; at += 1) await agent.submit(write(`/sandbox/${at}.md`, `before ${at}`));
    const over = new AbortController();
    let during = 0;
    const rotation = turnpike.rotateCaseKeys({ case: CASE, ...BY }).finally(() => over.abort());
    while (!over.signal.aborted) {
      expect(await agent.submit(write(`/sandbox/during-${during % 20}.md`, `during ${during}`))).toMatchObject({
        outcome: 'SUCCESS',
      });
      during += 1;
    }
    const { rotations, resealed } = await rotation;
    expect(rotations).toMatchObject([{ case_id: CASE, key_no: 1, by: 'otto operator', resumed: false }]);
    expect(resealed).toBeGreaterThanOrEqual(30);
    expect(during).toBeGreaterThan(0);
    expect(await agent.submit(JSON.stringify(proposal('READ_FILE', { path: '/sandbox/3.md' })))).toMatchObject({
      result: { content: 'before 3' },
    });
    // Two at once: each is finished.
    const both = await Promise.all([1, 2].map(() => turnpike.rotateCaseKeys({ case: null, ...BY })));
    expect(both.flatMap((each) => each.rotations).map(({ case_id }) => case_id)).toEqual([CASE, CASE]);
    await agent.end();
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
    await turnpike.close();
    const names = readdirSync(join(folder, '.turnpike/keys/cases'));
    expect(names.filter((name) => name.endsWith('.key'))).toHaveLength(1);
    const again = await open(folder);
    expect(await again.replay()).toMatchObject({ ok: true });
    await again.close();
  }, 60_000);

  test('is refused for an invalid person, role or case, and does nothing without a case', async () => {
    const folder = tempFolder();
    await command(folder, ['init', '--template', 'reference']);
    const turnpike = await open(folder);
    expect(await turnpike.rotateCaseKeys({ case: null, ...BY })).toEqual({ rotations: [], resealed: 0 });
    for (const wrong of [
      { actor: 'x' },
      { actor: 'two\nlines' },
      { role: '' },
      { case: '../x' },
      { case: 'case-9999' },
    ]) {
      await expect(turnpike.rotateCaseKeys({ case: CASE, ...BY, ...wrong })).rejects.toMatchObject({ code: 'USAGE' });
    }
    await turnpike.close();
  });
});
