// Refusals over HTTP and MCP when a storage budget is used up or the disk is low: a code and a constant message.

import { expect, test } from '@jest/globals';
import { PROBLEMS } from '../../../src/interfaces/service/problems.js';
import { HttpBench, proposal } from '../http/http-harness.js';
import { call, clientOf, serviceOn } from '../mcp/mcp-harness.js';
import { Bench } from '../../fixtures/bench.js';

const LOW = { freeBytesMin: Number.MAX_SAFE_INTEGER };
/** Enough for the start of one run, but not for a step. */
const SMALL = { runBytes: 20_000 };

test('HTTP responds 507 if a budget is used up, and records nothing', async () => {
  const http = await HttpBench.open({ storage: SMALL });
  const token = http.token();
  const run_id = await http.start(token);
  const before = (await http.bench.entries()).length;
  const response = await http.ask(`/agents/${run_id}/steps`, token, { body: proposal('THINK') });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    507,
    expect.stringMatching(/^application\/problem\+json/),
  ]);
  expect(await response.json()).toMatchObject({ code: 'STORAGE_BUDGET', detail: PROBLEMS.STORAGE_BUDGET[1] });
  expect(await http.bench.entries()).toHaveLength(before);
  await http.close();
});

test('HTTP responds 503 with Retry-After if the disk is low', async () => {
  const http = await HttpBench.open({ storage: LOW });
  const response = await http.ask('/agents', http.token(), { json: {} });
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60']);
  expect(await response.json()).toMatchObject({ code: 'STORAGE_LOW', detail: PROBLEMS.STORAGE_LOW[1] });
  expect(await http.bench.entries()).toEqual([]);
  await http.close();
});

test.each([
  ['STORAGE_BUDGET', SMALL],
  ['STORAGE_LOW', LOW],
] as const)('a call over MCP is told %s, with its constant message', async (code, storage) => {
  const bench = await Bench.open({ storage });
  const client = await clientOf(serviceOn(bench));
  const { isError, text } = await call(client, 'think');
  expect(isError).toBe(true);
  expect(JSON.parse(text)).toEqual({ error: { code, message: PROBLEMS[code][1] } });
  await client.close();
  await bench.close();
});

test('a reader of content uses its own budget, not that of the agent who wrote it', async () => {
  const http = await HttpBench.open({ storage: { actorBytes: 200_000 } });
  const { turnpike } = http.bench;
  const agent = http.token();
  const run_id = await http.start(agent);
  const step = (): Promise<Response> => http.ask(`/agents/${run_id}/steps`, agent, { body: proposal('THINK') });
  expect((await step()).status).toBe(200);
  const entries = await http.bench.entries();
  const log_index = entries.findIndex(({ type, body }) => type === 'input' && body.kind === 'proposal');
  const brought = entries.flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'proposal' ? [body.payload.hash_sha256] : [],
  );
  const content = { log_index, sha256: brought[0] ?? '', actor: 'berta', role: 'ATTORNEY_ADMIN' };
  const read = (): Promise<string> =>
    turnpike.readContent(content).then(
      (bytes) => (bytes === null ? 'nothing' : 'read'),
      (error: unknown) => (error as { readonly code: string }).code,
    );
  const all = new Set<string>();
  for (let n = 0; n < 100 && !all.has('STORAGE_BUDGET'); n += 1) all.add(await read());
  expect([...all]).toEqual(['read', 'STORAGE_BUDGET']);
  expect((await step()).status).toBe(200);
  await http.close();
});
