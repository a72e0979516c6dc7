// A request that its lane withholds while it waits for approval: over HTTP only approvers see it.

import { afterEach, expect, test } from '@jest/globals';
import { CONTENT_READ } from '../../../src/core/contract/run/run-context.js';
import type { Right } from '../../../src/core/contract/token.js';
import { ApprovalsClient } from '../../../src/interfaces/inspector/page/data/approvals-client.js';
import { HttpFeed } from '../../../src/interfaces/inspector/page/data/http-feed.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { HttpBench, proposal } from './http-harness.js';

const APPROVED = `
approvals:
  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const withholding: typeof serviceEdit = (name, text) => {
  const edited = serviceEdit(name, text);
  if (name === 'actions') return edited + APPROVED;
  return edited.replace('  - lane_id: CASE_WORK\n', '$&    withholds_content: true\n');
};
const AMOUNT = 81_723_645;

let http: HttpBench;
afterEach(() => http.close());

async function asked(): Promise<{ readonly run_id: string; readonly digest: string }> {
  const { tools, targets } = service();
  const clock = new ManualClock();
  http = await HttpBench.open({ edit: withholding, tools, targets, clock }, { clock });
  const agent = http.token({ role: CASE_AGENT.role });
  const run_id = await http.start(agent, { lane: CASE_AGENT.lane, case: 'case-1' });
  const body = proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: AMOUNT } });
  await http.ask(`/agents/${run_id}/steps`, agent, { body });
  const list = await (await http.ask('/approvals', http.token({ rights: ['observe'] }))).json();
  const [{ digest }] = (list as { approvals: [{ digest: string; args_sha256: string | null }] }).approvals;
  return { run_id, digest };
}

const readers = async (): Promise<string[]> =>
  (await http.bench.entries()).flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.outcome_reason === CONTENT_READ ? [entry.body.actor.actor_id] : [],
  );

test.each<[string, readonly Right[], string, string]>([
  ['only looks', ['observe'], 'olga', 'ATTORNEY_ADMIN'],
  ['may observe and approve, in a role that may not approve this', ['observe', 'approve'], 'gert', 'GOVERNANCE_AGENT'],
  ['may approve, but has requested it', ['approve'], 'agent-one', 'ATTORNEY_ADMIN'],
])('S4-62: a reader who %s gets the hash, and nothing is recorded', async (_who, rights, actor, role) => {
  const { run_id, digest } = await asked();
  const token = http.token({ actor, role, rights });
  const answer = await http.ask(`/approvals/${run_id}/${digest}`, token);
  const text = await answer.text();
  expect([answer.status, text.includes(String(AMOUNT))]).toEqual([200, false]);
  expect(JSON.parse(text)).toEqual({
    withheld: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown, bytes: expect.any(Number) as unknown },
  });
  expect(await (await http.ask('/approvals', token)).text()).toContain('"args_sha256":null');
  expect(await readers()).toEqual([]);
  const page = new ApprovalsClient(new HttpFeed(http.server.url, token));
  expect(await page.list()).toMatchObject([{ run_id, request: null }]);
});

test('S4-62: a person who may approve the request sees it, and the ledger records the read', async () => {
  const { run_id, digest } = await asked();
  const token = http.token({ actor: 'berta', role: 'ATTORNEY_ADMIN', rights: ['approve'] });
  const request = { action: 'CALL_TOOL', args: { tool: 'billing.charge', input: { amount: AMOUNT } } };
  expect(await (await http.ask(`/approvals/${run_id}/${digest}`, token)).json()).toEqual(request);
  expect(await readers()).toEqual(['berta']);
  const page = new ApprovalsClient(new HttpFeed(http.server.url, token));
  expect(await page.list()).toMatchObject([{ run_id, request }]);
});
