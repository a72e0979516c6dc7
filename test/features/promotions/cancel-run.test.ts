// S4-21: a promotion or export that waits for approval can be cancelled: created -> cancelled.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { Bench } from '../../fixtures/bench.js';
import { service } from '../../fixtures/service.js';
import { codeOf, HttpBench } from '../../interfaces/http/http-harness.js';

let http: HttpBench;
beforeEach(async () => {
  http = await HttpBench.on(await Bench.open({ approvals: true, targets: service().targets, ids: nanoidIds() }));
});
afterEach(() => http.close());

const BY = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-0001' };
const STARTS = {
  promotion: () => {
    const record = { id: 'p-1', text: 'Ask first.' };
    return http.bench.turnpike.promote({ ...BY, ticket: 'T-1', target: 'shared_playbooks', record });
  },
  export: () => http.bench.turnpike.export({ ...BY, reason: 'audit', destination: 'bag' }),
};
const eventsOf = async (run_id: string): Promise<readonly string[]> => {
  const reasons: string[] = [];
  for await (const { type, body } of http.bench.turnpike.ledger.entries(run_id)) {
    if (type === 'audit_event') reasons.push(body.outcome_reason ?? '');
  }
  return reasons;
};

describe.each(['promotion', 'export'] as const)('S4-21: a waiting %s', (kind) => {
  test('is cancelled by its handle, once, and takes no vote afterwards', async () => {
    const run = await STARTS[kind]();
    expect(run.digest).not.toBeNull();
    expect(await run.cancel('by_operator')).toMatchObject({ state: 'cancelled' });
    const { turnpike } = http.bench;
    expect(await turnpike.ledger.run(run.run_id)).toMatchObject({ status: 'cancelled' });
    expect(await turnpike.ledger.run(run.root_run_id)).toMatchObject({ status: 'cancelled' });
    expect((await eventsOf(run.run_id)).at(-1)).toMatch(/^cancelled:/);
    await expect(run.cancel('again')).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
    const vote = {
      run: run.run_id,
      digests: [run.digest ?? ''],
      decision: 'approve',
      actor: 'otto',
      role: BY.role,
    } as const;
    await expect(turnpike.approve(vote)).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
  });

  test('is cancelled over HTTP by a token that governs, and by no other', async () => {
    const { run_id } = await STARTS[kind]();
    const [other, govern] = [http.token(), http.token({ actor: 'anna', role: BY.role, rights: ['govern'] })];
    const cancel = (token: string) => http.ask(`/runs/${run_id}/cancel`, token, { json: { reason: 'by_operator' } });
    expect(await codeOf(await cancel(other))).toBe('404 RUN_UNKNOWN');
    expect(await (await cancel(govern)).json()).toMatchObject({ state: 'cancelled' });
    expect(await codeOf(await cancel(govern))).toBe('409 INVALID_STATE_TRANSITION');
  });
});
