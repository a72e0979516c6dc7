// The ledger records who is shown content before the content is sent, and a client that polls does not make it grow.

import { afterEach, describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { CONTENT_READ } from '../../../src/core/contract/run/run-context.js';
import { ApprovalsClient } from '../../../src/interfaces/inspector/page/data/approvals-client.js';
import { HttpFeed } from '../../../src/interfaces/inspector/page/data/http-feed.js';
import type { Access } from '../../../src/interfaces/http/http-service.js';
import { homeInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { Bench } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { SPEC } from '../../fixtures/session.js';
import { codeOf, HttpBench, proposal } from './http-harness.js';

const APPROVED = `
approvals:
  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const edit: typeof serviceEdit = (name, text) => serviceEdit(name, text) + (name === 'actions' ? APPROVED : '');
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
const MARK = 'for billing alone';

let http: HttpBench;
afterEach(() => http.close());

/** The recorded reads by reader and kind of content, in the order of the ledger. */
const reads = async (): Promise<string[]> =>
  (await http.bench.entries()).flatMap((entry) => {
    if (entry.type !== 'audit_event' || entry.body.outcome_reason !== CONTENT_READ) return [];
    const { actor, role_id = '', target } = entry.body;
    return [`${actor.actor_id} ${role_id} ${target?.name ?? ''}`];
  });

describe('pending approvals', () => {
  interface Listed {
    readonly run_id: string;
    readonly digest: string;
    readonly args_sha256: string | null;
  }
  const listed = async (token: string): Promise<{ text: string; approvals: Listed[] }> => {
    const text = await (await http.ask('/approvals', token)).text();
    return { text, ...(JSON.parse(text) as { approvals: Listed[] }) };
  };

  /** Starts an agent that requests a charge. */
  async function asked(audit?: (access: Access) => Promise<void>): Promise<string> {
    const { tools, targets } = service();
    const clock = new ManualClock();
    http = await HttpBench.open({ edit, tools, targets, clock }, { clock, ...(audit === undefined ? {} : { audit }) });
    const agent = http.token({ role: CASE_AGENT.role });
    const run = await http.start(agent, { lane: CASE_AGENT.lane, case: 'case-1' });
    const args = { tool: 'billing.charge', input: { amount: 5 } };
    const body = proposal('CALL_TOOL', args).replace('A test.', MARK);
    expect(await (await http.ask(`/agents/${run}/steps`, agent, { body })).json()).toMatchObject({ outcome: 'DENIED' });
    return run;
  }

  test('the list contains only hashes, its reads are not recorded, and it can be polled without limit', async () => {
    const run_id = await asked();
    const voter = http.token({ ...ANNA, rights: ['approve'] });
    const before = await http.bench.turnpike.ledger.size();
    const { text, approvals } = await listed(voter);
    const args = { tool: 'billing.charge', input: { amount: 5 } };
    expect(approvals).toMatchObject([{ run_id, name: 'CALL_TOOL', args_sha256: sha256(canonicalJson(args)) }]);
    for (const content of ['billing.charge', 'amount', MARK]) expect(text).not.toContain(content);
    for (let again = 0; again < 5; again += 1) await listed(voter);
    expect(await http.bench.turnpike.ledger.size()).toBe(before);
  });

  test('a read of the arguments is recorded once for each reader, in the requesting run, before they are sent', async () => {
    const run_id = await asked();
    const voter = http.token({ ...ANNA, rights: ['approve'] });
    const [{ digest }] = (await listed(voter)).approvals as [Listed];
    const path = `/approvals/${run_id}/${digest}`;
    const request = { action: 'CALL_TOOL', args: { tool: 'billing.charge', input: { amount: 5 } } };
    const many = await Promise.all([1, 2, 3].map(() => http.ask(path, voter)));
    for (const one of many) expect(await one.json()).toEqual(request);
    expect(await reads()).toEqual(['anna ATTORNEY_ADMIN raw_payload']);
    const size = await http.bench.turnpike.ledger.size();
    expect((await http.ask(path, voter)).status).toBe(200);
    expect(await http.bench.turnpike.ledger.size()).toBe(size);
    await http.ask(path, http.token({ actor: 'carl', role: 'MAPPING_AGENT', rights: ['observe'] }));
    expect(await reads()).toEqual(['anna ATTORNEY_ADMIN raw_payload', 'carl MAPPING_AGENT raw_payload']);
    const [told] = (await http.bench.entries()).filter(
      ({ type, body }) => type === 'audit_event' && 'outcome_reason' in body && body.outcome_reason === CONTENT_READ,
    );
    expect(told?.body).toMatchObject({ run_id });
    const ballot = { json: { run_id, digests: [digest], decision: 'approve' } };
    expect(await (await http.ask('/approvals', voter, ballot)).json()).toMatchObject({ votes: [{ counted: true }] });
    // The approval is no longer pending, so it cannot be read for a vote any more.
    expect(await codeOf(await http.ask(path, voter))).toBe('404 NOT_FOUND');
  });

  test('the page reads each request once however often it polls the list, and forgets decided requests', async () => {
    const run_id = await asked();
    const voter = http.token({ ...ANNA, rights: ['approve', 'observe'] });
    const page = new ApprovalsClient(new HttpFeed(http.server.url, voter));
    const request = { action: 'CALL_TOOL', args: { tool: 'billing.charge', input: { amount: 5 } } };
    for (let look = 0; look < 3; look += 1) expect(await page.list()).toMatchObject([{ run_id, request }]);
    const counted = 'route="/api/v1/approvals/:run_id/:digest",method="GET",status="200"} 1\n';
    expect(await (await http.ask('/metrics', voter)).text()).toContain(counted);
    const [{ digest } = { digest: '' }] = await page.list();
    expect(await page.vote(run_id, digest, 'approve')).toMatchObject([{ counted: true }]);
    expect(await page.list()).toEqual([]);
  });

  test('content is not shown if its read cannot be recorded', async () => {
    const told: Access[] = [];
    const run_id = await asked((access) => {
      told.push(access);
      return Promise.reject(new Error('the disk is full'));
    });
    const voter = http.token({ ...ANNA, rights: ['approve'] });
    const [{ digest }] = (await listed(voter)).approvals as [Listed];
    const answer = await http.ask(`/approvals/${run_id}/${digest}`, voter);
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain('amount');
    expect(told).toMatchObject([{ actor: 'anna', route: '/api/v1/approvals/{run_id}/{digest}', subject: { digest } }]);
  });

  test('a token for one case sees neither the list nor the arguments of another case', async () => {
    const run_id = await asked();
    const of = (case_id: string): string => http.token({ ...ANNA, rights: ['approve'], case: case_id });
    const [{ digest }] = (await listed(of('case-1'))).approvals as [Listed];
    expect((await listed(of('case-2'))).approvals).toEqual([]);
    expect(await codeOf(await http.ask(`/approvals/${run_id}/${digest}`, of('case-2')))).toBe('404 NOT_FOUND');
    expect(await reads()).toEqual([]);
    expect((await http.ask(`/approvals/${run_id}/${digest}`, of('case-1'))).status).toBe(200);
    const other = `/approvals/${run_id}/${'f'.repeat(64)}`;
    expect(await codeOf(await http.ask(other, of('case-1')))).toBe('404 NOT_FOUND');
  });
});

describe('artifacts', () => {
  test('the ledger records each read, but none of withheld or missing content', async () => {
    const lane = '  - lane_id: SANDBOX_FILES\n';
    for (const withholds of [false, true]) {
      const bench = await Bench.open({
        edit: (name, text) =>
          name === 'lanes' && withholds ? text.replace(lane, `${lane}    withholds_content: true\n`) : text,
      });
      http = await HttpBench.on(bench, { inspector: homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home) });
      const agent = await bench.turnpike.startAgent();
      const payload = proposal('WRITE_FILE', { path: '/sandbox/a.md', content: MARK });
      await agent.submit(payload);
      const entries = await bench.entries();
      const at = entries.findIndex(({ type, body }) => type === 'input' && 'kind' in body && body.kind === 'proposal');
      const observer = http.token({ ...ANNA, rights: ['observe'] });
      const path = (hash: string): string => `/events/${at}/artifacts/${hash}`;
      const answer = await http.ask(path(sha256(payload)), observer);
      expect([answer.status, (await answer.text()).includes(MARK)]).toEqual(withholds ? [404, false] : [200, true]);
      expect((await http.ask(path('f'.repeat(64)), observer)).status).toBe(404);
      expect((await http.ask(`/inspector/steps/${agent.run_id}/7`, observer)).status).toBe(404);
      expect(await reads()).toEqual(withholds ? [] : ['anna ATTORNEY_ADMIN raw_payload']);
      if (!withholds) await http.close();
    }
  });
});

describe('a step', () => {
  test('the ledger records the content in its response: the payload, and the result or the repeated response', async () => {
    const bench = await Bench.open({
      edit: (name, text) =>
        name === 'actions' ? text.replace('duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay') : text,
    });
    http = await HttpBench.on(bench, { inspector: homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home) });
    const agent = await bench.turnpike.startAgent();
    const write = proposal('WRITE_FILE', { path: '/sandbox/a.md', content: MARK });
    const read = proposal('READ_FILE', { path: '/sandbox/a.md' });
    const other = read.replace('a.md', 'b.md');
    for (const payload of [write, read, read, other, '{"not": "a proposal"}']) await agent.submit(payload);
    const observer = http.token({ ...ANNA, rights: ['observe'] });
    const told = async (step: number): Promise<[boolean, string[]]> => {
      const before = (await reads()).length;
      const answer = await http.ask(`/inspector/steps/${agent.run_id}/${step}`, observer);
      const { response } = (await answer.json()) as { response: string };
      return [response.includes(MARK), (await reads()).slice(before).map((line) => line.split(' ').at(-1) ?? '')];
    };
    expect(await told(1)).toEqual([false, ['raw_payload', 'result']]);
    expect(await told(2)).toEqual([true, ['raw_payload', 'result']]);
    expect(await told(3)).toEqual([true, ['raw_payload', 'response']]);
    // A different payload with a used id is rejected: the response of the first is not shown with it.
    expect(await told(4)).toEqual([false, ['raw_payload']]);
    expect(await told(5)).toEqual([false, ['raw_payload']]);
    expect((await bench.turnpike.ledger.verify()).ok).toBe(true);
  });

  test('withheld content is not shown, and no read is recorded', async () => {
    const bench = await Bench.open({ edit: withholding });
    http = await HttpBench.on(bench, { inspector: homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home) });
    const agent = await bench.turnpike.startAgent();
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: MARK }));
    const answer = await http.ask(`/inspector/steps/${agent.run_id}/1`, http.token({ ...ANNA, rights: ['observe'] }));
    expect(await answer.json()).toMatchObject({ step: 1, response: null });
    expect(await reads()).toEqual([]);
  });
});

const withholding = (name: string, text: string): string =>
  name === 'lanes' ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n') : text;

describe('a session', () => {
  test('a withheld spec is not shown to an observer, and no read is recorded', async () => {
    const bench = await Bench.open({ edit: withholding });
    http = await HttpBench.on(bench, { inspector: homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home) });
    const by = { actor: 'anna', role: 'maintainer' };
    const { data } = await bench.turnpike.sessions.start({ spec: SPEC, case: 'case-1', by });
    const id = data?.session_id ?? '';
    const view = await (await http.ask(`/inspector/sessions/${id}`, http.token(OBSERVER))).text();
    expect([view.includes('task-1-1'), view.includes('Write')]).toEqual([true, false]);
    const task = `/sessions/${id}/task?task_id=task-1-1`;
    const kept = await http.ask(task, http.token(OBSERVER));
    expect([kept.status, (await kept.text()).includes('Write')]).toEqual([410, false]);
    expect(await reads()).toEqual([]);
    // The agent that works through the spec receives it with its steps.
    const worker = http.token({ actor: 'wim', role: 'ATTORNEY_ADMIN', rights: ['sessions'] });
    expect(await (await http.ask(task, worker)).text()).toContain('Write /sandbox/a.md.');
    expect(await reads()).toEqual(['wim ATTORNEY_ADMIN session_spec']);
  });

  test('reads of its task and task tree are recorded once for each reader; reads of status and list are not', async () => {
    const { turnpike } = await opened();
    const started = await turnpike.sessions.start({ spec: SPEC, by: { actor: 'anna', role: 'maintainer' } });
    const id = started.data?.session_id ?? '';
    const [ben, eva] = [http.token({ ...OBSERVER, actor: 'ben' }), http.token({ ...OBSERVER, actor: 'eva' })];
    const size = await turnpike.ledger.size();
    for (const path of ['/sessions', `/sessions/${id}`]) {
      expect(await (await http.ask(path, ben)).text()).not.toContain('Write');
    }
    expect(await turnpike.ledger.size()).toBe(size);
    const task = `/sessions/${id}/task?task_id=task-1-1`;
    const view = `/inspector/sessions/${id}`;
    expect(await (await http.ask(task, ben)).text()).toContain('Write /sandbox/a.md.');
    expect(await reads()).toEqual(['ben ATTORNEY_ADMIN session_spec']);
    for (const at of ['', '?at=1', `?at=${size - 1}`]) {
      expect(await (await http.ask(`${view}${at}`, ben)).text()).toContain('"title":"Write"');
    }
    expect(await reads()).toEqual(['ben ATTORNEY_ADMIN session_spec']);
    await http.ask(view, eva);
    const both = ['ben ATTORNEY_ADMIN session_spec', 'eva ATTORNEY_ADMIN session_spec'];
    expect(await reads()).toEqual(both);
    expect(await codeOf(await http.ask('/inspector/sessions/ses_nobody', eva))).toBe('404 NOT_FOUND');
    // With another spec, reads of views after it are recorded again.
    const spec = { ...SPEC, title: 'Changed', phases: SPEC.phases.map((one) => ({ ...one, title: 'Later' })) };
    const by = { actor: 'anna', role: 'maintainer' };
    await turnpike.sessions.pause(id, {}, by);
    expect(await turnpike.sessions.rebase(id, { spec, force: true }, by)).toMatchObject({ error: null });
    await http.ask(`${view}?at=${size - 1}`, eva);
    expect(await reads()).toEqual(both);
    expect(await (await http.ask(view, eva)).text()).toContain('Later');
    expect(await reads()).toEqual([...both, 'eva ATTORNEY_ADMIN session_spec']);
    expect((await turnpike.ledger.verify()).ok).toBe(true);
  });

  test('content is not shown if its read cannot be recorded', async () => {
    const { turnpike } = await opened(() => Promise.reject(new Error('the disk is full')));
    const started = await turnpike.sessions.start({ spec: SPEC, by: { actor: 'anna', role: 'maintainer' } });
    const id = started.data?.session_id ?? '';
    const ben = http.token(OBSERVER);
    for (const path of [`/sessions/${id}/task?task_id=task-1-1`, `/inspector/sessions/${id}`]) {
      const answer = await http.ask(path, ben);
      expect([answer.status, (await answer.text()).includes('Write')]).toEqual([503, false]);
    }
  });

  const OBSERVER = { ...ANNA, rights: ['observe'] } as const;
  async function opened(audit?: (access: Access) => Promise<void>): Promise<HttpBench['bench']> {
    const bench = await Bench.open();
    const inspector = homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home);
    http = await HttpBench.on(bench, { inspector, ...(audit === undefined ? {} : { audit }) });
    return bench;
  }
});
