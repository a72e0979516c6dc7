// The HTTP service over real sockets.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { readShippedCharts } from '../../../src/system/shipped-charts.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { mintToken, singleTokenBook, TokenFile, tokenBook } from '../../../src/stores/keys/token-file.js';
import { UsageError } from '../../../src/core/errors.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import { homeInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { CASE_AGENT, service, serviceEdit, slowTool } from '../../fixtures/service.js';
import { traces } from '../mcp/mcp-harness.js';
import { lateStore, passTime } from '../../fixtures/late-store.js';
import { codeOf, HttpBench, proposal } from './http-harness.js';

let http: HttpBench;
beforeEach(async () => {
  http = await HttpBench.open();
});
afterEach(() => http.close());

/** What the head file of a home directory has now. */
async function headFileOf({ home }: { readonly home: string }) {
  const { store, externalHeadStore } = openHome(homePaths(home), { readOnly: true });
  try {
    return await externalHeadStore.read();
  } finally {
    await store.close();
  }
}

describe('steps', () => {
  test('a response has status 200 and exactly the bytes of the library, whatever its outcome', async () => {
    const token = http.token();
    const over = await http.start(token);
    const inside = await http.bench.turnpike.startAgent();
    const payloads: (string | Uint8Array<ArrayBuffer>)[] = [
      proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'hé\u2028llo' }),
      proposal('READ_FILE', { path: '/sandbox/a.md' }),
      proposal('DELETE_FILE', { path: '/sandbox/run.sh' }),
      proposal('READ_FILE', { path: '/sandbox/none.md' }),
      '{"not": "a proposal"}',
      ' ',
      'x'.repeat(70_000),
      Uint8Array.from([0xff, 0x00, 0x7b]),
    ];
    for (const payload of payloads) {
      const response = await http.ask(`/agents/${over}/steps`, token, {
        body: payload,
        headers: { 'content-type': 'application/octet-stream' },
      });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(await inside.respond(payload));
    }
    const [all] = [await traces(http.bench)];
    expect(all).toHaveLength(payloads.length * 2);
  });

  test('D4: a repeated key gets the recorded response, even after its run has ended; with another body 422', async () => {
    const token = http.token();
    const run = await http.start(token);
    const body = proposal('CREATE_DIRECTORY', { path: '/sandbox/d' });
    const step = (text: string, key = 'k-1', who = token) =>
      http.ask(`/agents/${run}/steps`, who, { body: text, headers: { 'idempotency-key': key } });
    const [first, beside] = await Promise.all([step(body), step(body)]);
    const text = await first.text();
    expect(text).toContain('SUCCESS');
    expect(await beside.text()).toBe(text);
    expect(await (await step(body)).text()).toBe(text);
    // Another token of the same agent is the same principal.
    expect(await (await step(body, 'k-1', http.token())).text()).toBe(text);
    expect(await traces(http.bench)).toHaveLength(1);
    expect(await codeOf(await step(proposal('THINK')))).toBe('422 IDEMPOTENCY_CONFLICT');
    const both = await Promise.all([step(proposal('THINK'), 'k-2'), step(proposal('THINK'), 'k-2')]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
    // Two are the records of the conflicts.
    expect((await traces(http.bench)).map(({ outcome }) => outcome)).toEqual([
      'SUCCESS',
      'DENIED',
      'SUCCESS',
      'DENIED',
    ]);
    await http.ask(`/agents/${run}/end`, token, { json: {} });
    expect(await (await step(body)).text()).toBe(text);
    expect(await codeOf(await step(proposal('THINK'), 'k-3'))).toBe('409 RUN_ENDED');
    expect(await codeOf(await step(body, 'a b'))).toBe('422 INVALID_REQUEST');
  });

  test('D4: after a restart, keys and their bodies are still known', async () => {
    const token = http.token();
    const run = await http.start(token);
    const body = proposal('CREATE_DIRECTORY', { path: '/sandbox/d' });
    const step = (text: string): Promise<Response> =>
      http.ask(`/agents/${run}/steps`, token, { body: text, headers: { 'idempotency-key': 'k-1' } });
    const text = await (await step(body)).text();
    expect(text).toContain('SUCCESS');
    http = await http.reopened();
    expect(await (await step(body)).text()).toBe(text);
    expect(await codeOf(await step(proposal('THINK')))).toBe('422 IDEMPOTENCY_CONFLICT');
    expect((await traces(http.bench)).map(({ outcome }) => outcome)).toEqual(['SUCCESS', 'DENIED']);
  });

  test('D15: `Prefer: wait=integrated` waits until the head file has a head that covers the step', async () => {
    const token = http.token();
    const run = await http.start(token);
    const step = (prefer: string, key?: string) =>
      http.ask(`/agents/${run}/steps`, token, {
        body: proposal('THINK'),
        headers: { prefer, ...(key === undefined ? {} : { 'idempotency-key': key }) },
      });
    for (const prefer of ['wait=integrated', 'respond-async, Wait = "integrated"; x']) {
      const response = await step(prefer, prefer.length > 20 ? 'k-1' : undefined);
      expect([response.status, response.headers.get('preference-applied')]).toEqual([200, 'wait=integrated']);
      const { size, root } = await http.bench.turnpike.ledger.head();
      expect(await headFileOf(http.bench)).toMatchObject({ size, root });
    }
    const response = await step('wait=10');
    expect([response.status, response.headers.get('preference-applied')]).toEqual([200, null]);
  });

  test('D15: a step that the log does not include in time has its response, without `Preference-Applied`', async () => {
    const { store, delay, release } = lateStore();
    const late = await HttpBench.open({ store });
    const token = late.token();
    const run = await late.start(token);
    delay();
    const answer = late.ask(`/agents/${run}/steps`, token, {
      body: proposal('THINK'),
      headers: { prefer: 'wait=integrated' },
    });
    await passTime(late.bench.clock, answer);
    const response = await answer;
    expect([response.status, response.headers.get('preference-applied')]).toEqual([200, null]);
    expect(await response.text()).toContain('SUCCESS');
    release();
    await late.close();
  });

  test('D3: only its agent reaches a run: for another role, actor or case it does not exist', async () => {
    const token = http.token();
    const run = await http.start(token);
    const others = [
      http.token({ actor: 'agent-two' }),
      http.token({ role: 'CASE_AGENT' }),
      http.token({ case: 'case-0002' }),
    ];
    for (const other of others) {
      for (const path of [`/runs/${run}`, `/runs/${run}/tree`, `/runs/run_0000000000000000.1`]) {
        expect(await codeOf(await http.ask(path, other))).toBe('404 RUN_UNKNOWN');
      }
      const listed = (await (await http.ask('/runs', other)).json()) as { trees: unknown[] };
      expect(listed.trees).toEqual([]);
      expect(await codeOf(await http.ask(`/agents/${run}/steps`, other, { body: proposal('THINK') }))).toBe(
        '404 RUN_UNKNOWN',
      );
      for (const path of [`/agents/${run}/end`, `/runs/${run}/cancel`]) {
        expect(await codeOf(await http.ask(path, other, { json: path.endsWith('end') ? {} : { reason: 'x' } }))).toBe(
          '404 RUN_UNKNOWN',
        );
      }
    }
    expect(await traces(http.bench)).toEqual([]);
    const own = (await (await http.ask('/runs', token)).json()) as { trees: { runs: { run_id: string }[] }[] };
    expect(own.trees.flatMap(({ runs }) => runs.map(({ run_id }) => run_id))).toEqual([run]);
    const all = (await (await http.ask('/runs', http.token({ rights: ['observe'] }))).json()) as typeof own;
    expect(all.trees[0]?.runs).toHaveLength(2);
    expect(await codeOf(await http.ask('/agents', others[2]!, { json: { case: 'case-0003' } }))).toBe(
      '403 RIGHT_MISSING',
    );
  });
});

describe('runs', () => {
  test('a tree is listed in pages, with each run once', async () => {
    const token = http.token({ rights: ['act', 'observe'] });
    const run = await http.start(token);
    for (let n = 0; n < 3; n += 1) {
      const args = { path: `/sandbox/${n}.txt`, content: 'x' };
      await http.ask(`/agents/${run}/steps`, token, { body: proposal('WRITE_FILE', args) });
    }
    interface Told {
      readonly runs: readonly { readonly run_id: string }[];
      readonly next: number | null;
    }
    const whole = (await (await http.ask(`/runs/${run}/tree`, token)).json()) as Told;
    expect(whole.next).toBeNull();
    expect(whole.runs.length).toBeGreaterThan(2);
    const told: Told['runs'][number][] = [];
    let pages = 0;
    for (let after: number | null = -1; after !== null; pages += 1) {
      const page = (await (await http.ask(`/runs/${run}/tree?limit=2&after=${after}`, token)).json()) as Told;
      told.push(...page.runs);
      after = page.next;
    }
    expect(told).toEqual(whole.runs);
    expect(pages).toBe(Math.ceil(whole.runs.length / 2));
  });

  test('a record has a strong ETag: a cached record is not sent again, and a changed run is not ended', async () => {
    const token = http.token();
    const run = await http.start(token);
    const first = await http.ask(`/runs/${run}`, token);
    const etag = first.headers.get('etag')!;
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/);
    const known = await http.ask(`/runs/${run}`, token, { headers: { 'if-none-match': `"x", ${etag}` } });
    expect([known.status, await known.text(), known.headers.get('etag')]).toEqual([304, '', etag]);
    for (const weak of [`W/${etag}`, `"x",W/${etag}`, `W/"x", W/${etag} `]) {
      expect((await http.ask(`/runs/${run}`, token, { headers: { 'if-none-match': weak } })).status).toBe(304);
    }
    const weak = { headers: { 'if-match': `W/${etag}` }, json: {} };
    expect(await codeOf(await http.ask(`/agents/${run}/end`, token, weak))).toBe('412 PRECONDITION_FAILED');
    const stale = { headers: { 'if-match': '"x"' }, json: {} };
    expect(await codeOf(await http.ask(`/agents/${run}/end`, token, stale))).toBe('412 PRECONDITION_FAILED');
    const cancel = { headers: { 'if-match': '"x"' }, json: { reason: 'enough' } };
    expect(await codeOf(await http.ask(`/runs/${run}/cancel`, token, cancel))).toBe('412 PRECONDITION_FAILED');
    const ended = await http.ask(`/agents/${run}/end`, token, { headers: { 'if-match': etag }, json: {} });
    expect(await ended.json()).toEqual({ state: 'completed', reason: 'completed:end_of_input' });
    expect((await http.ask(`/runs/${run}`, token, { headers: { 'if-none-match': etag } })).status).toBe(200);
    expect(await codeOf(await http.ask(`/runs/${run}/cancel`, token, { json: { reason: 'x' } }))).toBe(
      '409 INVALID_STATE_TRANSITION',
    );
  });

  test('a cached chart is not sent again, and a missing chart is never reported as unchanged', async () => {
    const { ledger, home } = http.bench.turnpike;
    const served = await HttpBench.on(http.bench, { inspector: homeInspectorSource(ledger, home) });
    const token = served.token({ rights: ['observe'] });
    const [hash] = [...readShippedCharts().keys()];
    const ask = (of: string, known: string): Promise<Response> =>
      served.ask(`/inspector/charts/${of}`, token, { headers: { 'if-none-match': known } });
    const etag = (await ask(hash!, '"x"')).headers.get('etag')!;
    expect((await ask(hash!, etag)).status).toBe(304);
    expect((await ask(hash!, '*')).status).toBe(304);
    expect(await codeOf(await ask('f'.repeat(64), '*'))).toBe('404 NOT_FOUND');
    await served.server.close();
  });

  test('a list continues where its last page ended', async () => {
    const token = http.token();
    const runs = [await http.start(token), await http.start(token), await http.start(token)];
    const seen: string[] = [];
    let after = '';
    for (;;) {
      const page = (await (await http.ask(`/runs?limit=2${after}`, token)).json()) as {
        trees: { runs: { run_id: string }[] }[];
        next: number | null;
      };
      seen.push(...page.trees.flatMap(({ runs: some }) => some.map(({ run_id }) => run_id)));
      if (page.next === null) break;
      after = `&after=${page.next}`;
    }
    expect(seen).toEqual(runs);
  });

  test('a token with the right to govern cancels any run', async () => {
    const run = await http.start(http.token());
    const governor = http.token({ actor: 'somebody', role: 'ATTORNEY_ADMIN', rights: ['govern'] });
    const answer = await http.ask(`/runs/${run}/cancel`, governor, { json: { reason: 'enough' } });
    expect(await answer.json()).toEqual({ state: 'cancelled', reason: 'by_caller' });
  });
});

describe('tokens', () => {
  test.each([['observe'], ['sessions']] as const)('a token for a single case cannot have the right %s', (right) => {
    const grant = { actor: 'anna', role: 'SANDBOX_AGENT', rights: ['act', right], case: 'case-1' } as const;
    const mint = (of: Parameters<typeof mintToken>[0]): unknown => mintToken(of, systemClock(), nanoidIds());
    expect(() => mint(grant)).toThrow(expect.objectContaining({ code: 'USAGE' }));
    expect(() => mint({ ...grant, rights: ['act'] })).not.toThrow();
  });

  test('the file stores only the hash of a token, which is valid until it is revoked', async () => {
    const clock = new ManualClock();
    const path = join(http.bench.home, 'keys', 'tokens.json');
    const file = new TokenFile(path, clock);
    const served = await HttpBench.open({}, { tokens: file });
    const grant = { actor: 'agent-one', role: 'SANDBOX_AGENT', rights: ['act'] as const };
    // Created as by another process, such as the command.
    const other = new TokenFile(path, clock);
    const { token, record } = other.mint(grant, nanoidIds());
    const short = other.mint({ ...grant, days: 1 }, nanoidIds());
    expect(readFileSync(path, 'utf8')).not.toContain(token);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await served.ask('/health', token)).status).toBe(200);
    expect((await served.ask('/health', short.token)).status).toBe(200);
    clock.advance(86_400_000);
    expect(await codeOf(await served.ask('/health', short.token))).toBe('401 UNAUTHENTICATED');
    expect(other.revoke(record.id)).toBe(true);
    expect(await codeOf(await served.ask('/health', token))).toBe('401 UNAUTHENTICATED');
    expect(other.revoke(record.id)).toBe(false);
    await served.close();
  });

  test('without a stored token the service does not listen on an address that other machines reach', async () => {
    await expect(HttpBench.open({}, { host: '0.0.0.0' })).rejects.toThrow(UsageError);
    const open = await HttpBench.open({}, { host: '0.0.0.0', storedTokens: true });
    expect(open.server.url).toContain('0.0.0.0');
    await open.close();
  });
});

test('a token is the same agent over MCP and HTTP, and needs the right to act for both', async () => {
  const token = http.token();
  const connect = async (bearer: string): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${bearer}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${http.server.url}/mcp`), { requestInit }));
    return client;
  };
  const client = await connect(token);
  const called = await client.callTool({ name: 'think', arguments: {} });
  const run = (called._meta as Record<string, string>)['turnpike/run-id']!;
  const response = await http.ask(`/agents/${run}/steps`, token, { body: proposal('THINK') });
  expect(await response.text()).toContain('SUCCESS');
  const [first, second] = await traces(http.bench);
  expect([first?.run_id, second?.run_id]).toEqual([run, run]);
  await expect(connect(http.token({ rights: ['observe'] }))).rejects.toThrow();
  await expect(connect('x'.repeat(43))).rejects.toThrow();
  // Another token cannot use a session even if it knows the id.
  const session = (client.transport as StreamableHTTPClientTransport).sessionId!;
  const stolen = await fetch(`${http.server.url}/mcp`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${http.token({ actor: 'agent-two' })}`, 'mcp-session-id': session },
  });
  expect(stolen.status).toBe(404);
  await client.close();
});

test('closing finishes the step in flight, ends streams, and accepts no new requests', async () => {
  const entered = createDeferred<null>();
  const release = createDeferred<null>();
  const slow = await HttpBench.open({ edit: serviceEdit, tools: [slowTool(entered, release)] });
  const token = slow.token({ role: CASE_AGENT.role, rights: ['act', 'observe'] });
  const run = await slow.start(token, { lane: CASE_AGENT.lane });
  const stream = await slow.ask('/stream?after=-1', token);
  const body = proposal('CALL_TOOL', { tool: 'slow.tool', input: {} });
  const answer = slow.ask(`/agents/${run}/steps`, token, { body });
  await entered.promise;
  let isClosed = false;
  const closed = slow.server.close().then(() => (isClosed = true));
  await stream.text();
  await expect(fetch(slow.server.url)).rejects.toThrow();
  // Closing must wait for the step before the ledger is closed.
  expect(isClosed).toBe(false);
  release.resolve(null);
  expect(await (await answer).text()).toContain('SUCCESS');
  await closed;
  await slow.bench.close();
});

test('health fails while a readiness check fails, and names the check', async () => {
  const token = http.token();
  expect(await (await http.ask('/health', token)).json()).toMatchObject({ status: 'ok', components: 8 });
  const { ledger } = http.bench.turnpike;
  const size = ledger.size.bind(ledger);
  ledger.size = () => Promise.reject(new Error(randomBytes(8).toString('hex')));
  expect(await codeOf(await http.ask('/health', token))).toBe('503 UNHEALTHY');
  ledger.size = size;
  const { turnpike } = http.bench;
  expect(await codeOf(await http.ask('/health', token))).toBe('200 ');
  const remove = turnpike.readiness.add({ name: 'issuer', run: () => 'it does not answer' });
  const answer = await http.ask('/health', token);
  remove();
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({
    code: 'UNHEALTHY',
    checks: [{ name: 'issuer', reason: 'it does not answer' }],
  });
});

test('D7: a vote has the actor of the token, whatever the body contains', async () => {
  const voter = http.token({ actor: 'voter', role: 'ATTORNEY_ADMIN', rights: ['approve'] });
  const ballot = { run_id: 'run_000000000000000000001.1', digests: ['f'.repeat(64)], decision: 'approve' };
  expect(await codeOf(await http.ask('/approvals', voter, { json: { ...ballot, actor: 'boss' } }))).toBe(
    '422 INVALID_REQUEST',
  );
  expect(await (await http.ask('/approvals', voter)).json()).toEqual({ approvals: [] });
});

test('D7: a vote over HTTP counts only with the right to approve and in an approver role', async () => {
  const edit: typeof serviceEdit = (name, text) =>
    name === 'actions'
      ? `${serviceEdit(name, text)}\napprovals:\n  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`
      : serviceEdit(name, text);
  const { world, tools, targets } = service();
  const clock = new ManualClock();
  const asking = await HttpBench.open({ edit, tools, targets, clock }, { clock });
  const agent = asking.token({ role: CASE_AGENT.role });
  const run = await asking.start(agent, { lane: CASE_AGENT.lane });
  const charge = async (): Promise<unknown> => {
    const body = proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 5 } });
    return ((await (await asking.ask(`/agents/${run}/steps`, agent, { body })).json()) as { outcome: string }).outcome;
  };
  expect(await charge()).toBe('DENIED');
  const voter = asking.token({ actor: 'anna', role: 'ATTORNEY_ADMIN', rights: ['approve'] });
  const { approvals } = (await (await asking.ask('/approvals', voter)).json()) as { approvals: { digest: string }[] };
  expect(approvals).toMatchObject([
    { run_id: run, name: 'CALL_TOOL', requested_by: 'agent-one', quorum: 1, votes: [] },
  ]);
  const ballot = { run_id: run, digests: [approvals[0]?.digest], decision: 'approve' };
  const vote = (token: string): Promise<Response> => asking.ask('/approvals', token, { json: ballot });
  expect(await codeOf(await vote(agent))).toBe('403 RIGHT_MISSING');
  expect(await codeOf(await vote(asking.token({ rights: ['observe', 'govern'] })))).toBe('403 RIGHT_MISSING');
  const other = asking.token({ actor: 'carl', role: 'MAPPING_AGENT', rights: ['approve'] });
  expect(await (await vote(other)).json()).toMatchObject({ votes: [{ counted: false }] });
  expect(await charge()).toBe('DENIED');
  expect(world.effects).toEqual([]);
  expect(await (await vote(voter)).json()).toMatchObject({ votes: [{ counted: true, rule_id: 'approval.granted' }] });
  expect(await charge()).toBe('SUCCESS');
  expect(world.effects).toHaveLength(1);
  const voters = (await asking.bench.entries()).flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.target?.name === 'approval'
      ? [`${entry.body.actor.actor_id} ${entry.body.role_id ?? ''} ${entry.body.outcome}`]
      : [],
  );
  expect(voters).toEqual(['carl MAPPING_AGENT deny', 'anna ATTORNEY_ADMIN allow']);
  await asking.close();
});

test('the metrics count the requests and steps', async () => {
  const token = http.token({ rights: ['act', 'observe'] });
  const run = await http.start(token);
  await http.ask(`/agents/${run}/steps`, token, { body: proposal('THINK') });
  const text = await (await http.ask('/metrics', token)).text();
  expect(text).toContain('turnpike_steps_total{outcome="SUCCESS"} 1');
  expect(text).toContain('route="/api/v1/agents/:run_id/steps",method="POST",status="200"} 1');
  expect(text).toContain(`turnpike_ledger_entries ${await http.bench.turnpike.ledger.size()}\n`);
  expect(text).toContain('turnpike_stream_clients 0\n');
  const stream = await http.ask('/stream?after=-1', token);
  expect(await (await http.ask('/metrics', token)).text()).toContain('turnpike_stream_clients 1\n');
  await stream.body?.cancel();
});

test('a token for one case can do nothing in another, whatever its rights', async () => {
  const run = await http.start(http.token(), { case: 'case-1' });
  const bound = (case_id: string): string =>
    http.token({ actor: 'anna', role: 'ATTORNEY_ADMIN', rights: ['govern', 'approve'], case: case_id });
  const vote = { json: { run_id: run, digests: ['a'.repeat(64)], decision: 'reject' } };
  const stranger = bound('case-2');
  expect(await codeOf(await http.ask('/approvals', stranger, vote))).toBe('403 RIGHT_MISSING');
  const settled = { json: { outcome: 'done' } };
  expect(await codeOf(await http.ask(`/runs/${run}/outcome`, stranger, settled))).toBe('403 RIGHT_MISSING');
  const cancel = { json: { reason: 'enough' } };
  for (const one of [run, 'run_zzzzzzzzzzzzzzzzzzzzz']) {
    expect(await codeOf(await http.ask(`/runs/${one}/cancel`, stranger, cancel))).toBe('403 RIGHT_MISSING');
  }
  expect((await http.ask('/approvals', bound('case-1'), vote)).status).toBe(200);
  expect((await http.ask(`/runs/${run}/cancel`, bound('case-1'), cancel)).status).toBe(200);
});

test('a token for one case sees that case, and everything else does not exist for it', async () => {
  const edit: typeof serviceEdit = (name, text) =>
    serviceEdit(name, text) +
    (name === 'actions'
      ? '\napprovals:\n  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n'
      : '');
  const clock = new ManualClock();
  const { tools, targets } = service();
  // The test clock fires no timers, so nothing may have to wait for one.
  const cased = await HttpBench.open({ edit, tools, targets, clock }, { clock, admission: { bulkShare: 1_000 } });
  const bound = (case_id: string, actor = 'anna'): string =>
    cased.token({ actor, role: 'ATTORNEY_ADMIN', rights: ['govern', 'approve', 'act'], case: case_id });
  const [own, stranger] = [bound('case-1'), bound('case-2')];
  const agent = await cased.start(cased.token(), { case: 'case-1' });
  const asked = { json: { case: 'case-1', reason: 'The file was asked for.', name: 'one' } };
  expect(await codeOf(await cased.ask('/exports', stranger, asked))).toBe('403 RIGHT_MISSING');
  const { run_id, digest } = (await (await cased.ask('/exports', own, asked)).json()) as Record<string, string>;
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  const ballot = { json: { run_id, digests: [digest], decision: 'approve' } };
  expect(await codeOf(await cased.ask('/approvals', bound('case-2', 'ben'), ballot))).toBe('403 RIGHT_MISSING');
  for (const path of [`/runs/${agent}`, `/runs/${agent}/tree`, `/runs/${run_id}`, `/exports/${run_id}`]) {
    expect([path, (await cased.ask(path, own)).status]).toEqual([path, 200]);
    expect([path, await codeOf(await cased.ask(path, stranger))]).toEqual([path, '404 RUN_UNKNOWN']);
  }
  expect(await codeOf(await cased.ask(`/promotions/${run_id}`, own))).toBe('404 RUN_UNKNOWN');
  const seen = async (token: string, path: string, name: string): Promise<number> =>
    ((await (await cased.ask(path, token)).json()) as Record<string, unknown[]>)[name]!.length;
  expect([await seen(own, '/runs', 'trees'), await seen(stranger, '/runs', 'trees')]).toEqual([2, 0]);
  expect([await seen(own, '/approvals', 'approvals'), await seen(stranger, '/approvals', 'approvals')]).toEqual([1, 0]);
  await cased.close();
});

test('a token record for one case with more rights than allowed does not get them', () => {
  const grant = { actor: 'anna', role: 'SANDBOX_AGENT', case: 'case-1' } as const;
  const { token, record } = mintToken({ ...grant, rights: ['act'] }, systemClock(), nanoidIds());
  const book = tokenBook(() => [{ ...record, rights: ['act', 'observe', 'sessions'] }], systemClock());
  expect(book.find(token)?.rights).toEqual(new Set(['act']));
  const single = singleTokenBook('secret', { ...grant, rights: ['govern', 'observe'] }, systemClock());
  expect(single.find('secret')?.rights).toEqual(new Set(['govern']));
});
