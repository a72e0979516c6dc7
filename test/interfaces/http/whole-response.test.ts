// S2-21: a response is sent whole and once. While its action runs, no byte of the response leaves the service.

import { afterEach, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { createDeferred } from '../../../src/runtime/deferred.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { CASE_AGENT, service, serviceEdit, slowTool } from '../../fixtures/service.js';
import { HttpBench, proposal } from './http-harness.js';

let http: HttpBench | null = null;
afterEach(() => http?.close());

/** Everything received over a connection, as it arrives. */
function listen(port: number, request: string) {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  const ended = new Promise<string>((resolve) => {
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
  socket.write(request);
  return { chunks, ended };
}

test('S2-21: a response is sent only after its step is recorded, as one body with its length', async () => {
  const [entered, release] = [createDeferred<null>(), createDeferred<null>()];
  const { targets } = service();
  http = await HttpBench.open({ edit: serviceEdit, tools: [slowTool(entered, release)], targets });
  const token = http.token({ role: CASE_AGENT.role });
  const run_id = await http.start(token, { lane: CASE_AGENT.lane });
  const body = proposal('CALL_TOOL', { tool: 'slow.tool', input: {} });
  const { port } = new URL(http.server.url);
  const lines = [
    `POST /api/v1/agents/${run_id}/steps HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  const { chunks, ended } = listen(Number(port), `${lines.join('\r\n')}\r\n\r\n${body}`);
  await entered.promise;
  // Another request is answered meanwhile, so the service had time to send something.
  expect((await http.ask(`/runs/${run_id}`, token)).status).toBe(200);
  expect(chunks).toEqual([]);
  release.resolve(null);
  const [head = '', text = ''] = (await ended).split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head.toLowerCase()).toContain(`content-length: ${Buffer.byteLength(text)}`);
  expect(head.toLowerCase()).not.toContain('transfer-encoding');
  const traces = (await http.bench.entries()).flatMap(({ type, body: entry }) =>
    type === 'step_trace' ? [entry] : [],
  );
  expect(JSON.parse(text)).toMatchObject({ outcome: 'SUCCESS' });
  expect(traces).toMatchObject([{ response_sha256: sha256(text) }]);
});

test('S2-21: a response larger than one piece is also one body with its length', async () => {
  http = await HttpBench.open();
  const token = http.token();
  const run_id = await http.start(token, { case: 'case-0001' });
  const content = 'x'.repeat(300_000);
  http.bench.put('large.md', content, 'case-0001');
  const body = proposal('READ_FILE', { path: '/sandbox/large.md' });
  const headers = { 'content-type': 'application/octet-stream', 'accept-encoding': 'identity' };
  const response = await http.ask(`/agents/${run_id}/steps`, token, { body, headers });
  const text = await response.text();
  expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
  expect(response.headers.get('transfer-encoding')).toBeNull();
  expect(JSON.parse(text)).toMatchObject({ outcome: 'SUCCESS', result: { content } });
});
