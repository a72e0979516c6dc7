// The cost of one tool call over MCP, compared with the same proposal in the library.
// `npm run build && node test/bench/mcp.mjs [--steps 300]`

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { mcpService, serveHttp } from '../../dist/src/interfaces/mcp/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const { values } = parseArgs({ options: { steps: { type: 'string', default: '300' } } });
const steps = Number(values.steps);
const folder = mkdtempSync(join(tmpdir(), 'turnpike-mcp-'));
const contract = patientContract(join(folder, 'contract'));
const log = winstonLog('error');
const token = 'a-token-of-the-bench';

const at = (times, share) => [...times].sort((a, b) => a - b)[Math.floor(times.length * share)];

async function timed(step) {
  const times = [];
  for (let index = -20; index < steps; index += 1) {
    const begin = performance.now();
    await step();
    if (index >= 0) times.push(performance.now() - begin);
  }
  return times;
}

try {
  const turnpike = await openTurnpike({ home: join(folder, 'home'), contract, log, control: false });
  const agent = await turnpike.startAgent({ case: 'case-local' });
  const service = mcpService({ turnpike, contract, log });
  const server = await serveHttp(service, { host: '127.0.0.1', port: 0, token });
  const client = new Client({ name: 'bench', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }));
  const library = await timed(() => agent.submit(payload('think')));
  const overMcp = await timed(async () => {
    const { isError } = await client.callTool({ name: 'propose', arguments: { proposal: payload('think') } });
    if (isError) throw new Error('a proposal was refused');
  });
  for (const [what, times] of [
    ['library', library],
    ['MCP over HTTP', overMcp],
  ]) {
    console.log(`${what}: p50 ${at(times, 0.5).toFixed(2)} ms, p95 ${at(times, 0.95).toFixed(2)} ms`);
  }
  console.log(`ratio of the medians: ${(at(overMcp, 0.5) / at(library, 0.5)).toFixed(2)}`);
  await client.close();
  await server.close();
  await turnpike.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
